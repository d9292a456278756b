"""Named graphs of a PyTorch program: captured on a plain start, given back by the hook on a restore."""

from __future__ import annotations

import contextlib
import hashlib
import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from foundry import capi, graphs, witness
from foundry.capi import Hook, Mode
from foundry.graphs import Answers, difference
from foundry.torch import memory, parity
from foundry.torch.graph import Graph, launcher
from foundry.torch.parity import Parity
from foundry.torch.random_state import REFUSAL, GeneratorState, generator_state
from foundry.torch.spans import Span
from foundry.torch.tensors import UnstorableError, describe, rebuild, signature
from foundry.torch.witness import Place, TorchSubject

REFUSED = "refused: "


@dataclass(frozen=True)
class _Ground:
    """What holds for all graphs of a set on a device. Laid at the set's first graph, in a capture and in a restore."""

    device: torch.device
    stream: torch.cuda.Stream
    state: GeneratorState
    layout: str
    watched: str


@dataclass(frozen=True)
class _Call:
    """One call of `capture_or_restore`."""

    key: str
    function: Callable[..., Any]
    inputs: Sequence[Any]
    warm_ups: int


class GraphSet:
    """Graphs that share one memory pool. Ask for them in the same order in every start, largest first to save memory.

    As with torch's own shared pools, a replay may overwrite the outputs of the other graphs of the set. `watched` names
    tensors that the graphs read or write besides their inputs, such as weights and caches: if one of them lies
    elsewhere, or has another shape or type than at capture, all graphs are captured anew.

    With `witness`, or under `foundry capture --witness`, a capture replays each graph on stated numbers and keeps a
    digest of what it gives, for `foundry restore --check`. Inputs, watched tensors and outputs are put back.
    """

    def __init__(
        self,
        name: str,
        *,
        watched: Sequence[Any] = (),
        pool: Any = None,
        capture_error_mode: str = "global",
        witness: bool = False,
        hook: Hook | None = None,
    ) -> None:
        self.name = name
        self._witness = witness
        self.hook = hook if hook is not None else capi.load()
        self._answers = Answers(name, self.hook)
        self._watched = watched
        self._pool = pool
        self._capture_error_mode = capture_error_mode
        self._grounds: dict[int, _Ground] = {}
        self._streams: dict[int, torch.cuda.Stream] = {}
        self._given: weakref.WeakValueDictionary[str, Graph] = weakref.WeakValueDictionary()
        self._ranges: dict[Span, tuple[float, float]] = {}

    @property
    def reasons(self) -> dict[str, str]:
        """Why graphs were captured instead of restored, or can't be stored, by key."""
        return self._answers.reasons

    def pool(self) -> Any:
        """Return the memory pool that the set's captures share."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        return self._pool

    def capture_or_restore(
        self,
        key: object,
        function: Callable[..., Any],
        inputs: Sequence[Any] = (),
        *,
        warm_ups: int = 1,
    ) -> Graph:
        """Give a graph of `function(*inputs)`: from the archive where it is proven equal, else by warm-up and capture.

        `inputs` may nest tensors and constants in tuples, lists and dicts. All must have the addresses, shapes, types
        and values that they had at capture (of tensors, the values are free), else the graph is captured anew.
        Outputs may nest in the same way and must not require grad.
        """
        call = _Call(self._answers.claim(key), function, inputs, warm_ups)
        graph = self._graph(call, torch.device("cuda", torch.cuda.current_device()))
        self._given[call.key] = graph
        return graph

    def parity(
        self,
        key: object,
        function: Callable[..., Any],
        inputs: Sequence[Sequence[Any]] | None = None,
        *,
        rounds: int = 2,
    ) -> Parity:
        """Replay a graph of the set and run `function` from the same state on other inputs, and compare all bytes.

        Each round has other numbers in all floating-point inputs and watched tensors; integers stay as they are, for
        they may be indices. `inputs` gives values instead, a list like the graph's inputs for each round. Everything
        is put back. A difference is no error: see `Parity.equal`.
        """
        text = str(key)
        graph = self._given.get(text)
        if graph is None:
            return Parity(text, 0, 0, (), "the set has no such graph, or it is no longer held")
        device = torch.device("cuda", torch.cuda.current_device())
        held = parity.Held(text, graph.replay, graph.inputs, graph.outputs)
        return parity.compare(self._place(device, graph.inputs), held, function, inputs, rounds)

    def _place(self, device: torch.device, inputs: Sequence[Any]) -> Place:
        others = [graph.outputs for graph in self._given.values()]
        return Place(self.hook, device, self._stream(device), inputs, self._watched, others, self._ranges)

    def _subject(self, call: _Call, ground: _Ground) -> TorchSubject:
        return TorchSubject(self._place(ground.device, call.inputs), self.name, call.key)

    def _graph(self, call: _Call, device: torch.device) -> Graph:
        mode = self.hook.mode()
        with self._answers.blocked():
            if mode is Mode.OFF:
                return self._plain(call, device)
            reason = memory.unsupported()
            if reason is not None:
                self._answers.give_up(call.key, reason)
                return self._plain(call, device)
            ground = self._ground(device, call.key)
            if mode is Mode.RESTORE:
                graph = self._restore(call, ground)
                if graph is not None:
                    return graph
            return self._capture(call, ground, store=capi.stores(self.hook))

    def _stream(self, device: torch.device) -> torch.cuda.Stream:
        """Return the stream of warm-up and capture: libraries keep their workspaces by stream."""
        if device.index not in self._streams:
            self._streams[device.index] = torch.cuda.Stream(device)
        return self._streams[device.index]

    def _ground(self, device: torch.device, key: str) -> _Ground:
        if device.index not in self._grounds:
            base = self.hook.range_base(device.index)
            layout = memory.settle_as(device, base, self._answers.recorded(key).get("layout"))
            watched = _digest(self._watched, device, base)
            self._grounds[device.index] = _Ground(
                device, self._stream(device), generator_state(device), layout, watched
            )
        return self._grounds[device.index]

    def _plain(self, call: _Call, device: torch.device) -> Graph:
        """Warm up and capture as torch's documentation says."""
        stream = self._stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(call.warm_ups):
                call.function(*call.inputs)
        torch.cuda.current_stream(device).wait_stream(stream)
        self.hook.count(graphs.WARM_UPS_RUN, call.warm_ups)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool(), stream=stream, capture_error_mode=self._capture_error_mode):
            outputs = call.function(*call.inputs)
        self.hook.count(graphs.CAPTURES_RUN)
        return Graph(call.key, call.inputs, outputs, graph.replay, restored=False, reason=self.reasons.get(call.key))

    def _restore(self, call: _Call, ground: _Ground) -> Graph | None:
        def check(metadata: Mapping[str, Any]) -> str | None:
            return _objection(metadata, call, ground)

        def subject(handle: int, metadata: Mapping[str, Any]) -> TorchSubject:
            made = self._subject(call, ground)
            outputs = rebuild(metadata["outputs"], ground.device, (call.inputs, self._watched))
            consumed = int(metadata["random"]["consumed"])
            replay = launcher(self.hook, handle, ground.device, ground.state, consumed)
            made.attach(outputs, replay, random=bool(consumed))
            return made

        found = self._answers.restore(call.key, check, subject if witness.check_wanted() else None)
        if found is None:
            return None
        handle, metadata = found
        outputs = rebuild(metadata["outputs"], ground.device, (call.inputs, self._watched))
        random = metadata["random"]
        if random["advance"]:
            generator = ground.state.generator
            generator.set_offset(generator.get_offset() + random["advance"])
        self.hook.count(graphs.WARM_UPS_SKIPPED, int(metadata["warm_ups"]))
        self.hook.count(graphs.CAPTURES_SKIPPED)
        replay = launcher(self.hook, handle, ground.device, ground.state, int(random["consumed"]))
        return Graph(call.key, call.inputs, outputs, replay, restored=True, reason=None)

    def _capture(self, call: _Call, ground: _Ground, *, store: bool) -> Graph:
        """Warm up and capture, leaving nothing behind that a restore would miss. Stores the graph if asked to."""
        if store:
            # The proof captures graphs of its own, so it must not come between the capture and what is read off it.
            ground.state.prove(self.hook, ground.stream)
        wanted = store and (self._witness or witness.witness_wanted())
        subject = self._subject(call, ground) if wanted else None
        generator = ground.state.generator
        seed, offset = generator.initial_seed(), generator.get_offset()
        self._warm_up(call, ground)
        advance = generator.get_offset() - offset if generator.initial_seed() == seed else None
        graph = torch.cuda.CUDAGraph()
        label = capi.labelled(self.hook, self.name, call.key) if store else contextlib.nullcontext(capi.Label())
        with label as stored:
            with torch.cuda.stream(ground.stream):
                torch.cuda.synchronize(ground.device)
                graph.capture_begin(pool=self.pool(), capture_error_mode=self._capture_error_mode)
                try:
                    outputs = call.function(*call.inputs)
                finally:
                    graph.capture_end()
            self.hook.count(graphs.CAPTURES_RUN)
            if store:
                metadata = self._describe(call, ground, outputs, advance)
                if "refused" in metadata:
                    self._answers.give_up(call.key, metadata["refused"])
                elif subject is not None:
                    subject.attach(outputs, graph.replay, random=bool(metadata["random"]["consumed"]))
                    metadata["witness"] = self._answers.make_witness(call.key, subject)
                stored.metadata = json.dumps(metadata)
        return Graph(call.key, call.inputs, outputs, graph.replay, restored=False, reason=self.reasons.get(call.key))

    def _warm_up(self, call: _Call, ground: _Ground) -> None:
        if not call.warm_ups:
            return
        name = f"{self.name}/{call.key} warm-up"
        with memory.scratch(self.hook, name, ground.device), torch.cuda.stream(ground.stream):
            torch.cuda.synchronize(ground.device)
            for _ in range(call.warm_ups):
                call.function(*call.inputs)
            torch.cuda.synchronize(ground.device)
            memory.clear_workspaces()
        self.hook.count(graphs.WARM_UPS_RUN, call.warm_ups)

    def _describe(self, call: _Call, ground: _Ground, outputs: Any, advance: int | None) -> dict[str, Any]:
        """Write down what a restore compares and rebuilds, or under `refused` why it must not use the graph."""
        try:
            if ground.watched.startswith(REFUSED):
                raise UnstorableError(ground.watched.removeprefix(REFUSED))
            return {
                "adapter": "torch",
                "torch": torch.__version__,
                "device": ground.device.index,
                "layout": ground.layout,
                "watched": ground.watched,
                "inputs": _signatures(call, ground.device),
                "outputs": describe(outputs, ground.device, (call.inputs, self._watched)),
                "random": _random(ground, self.hook, call, advance),
                "warm_ups": call.warm_ups,
            }
        except UnstorableError as error:
            return {"adapter": "torch", "refused": str(error)}


def _signatures(call: _Call, device: torch.device) -> list[Any]:
    return [signature(item, device, f"input[{index}]") for index, item in enumerate(call.inputs)]


def _digest(watched: Sequence[Any], device: torch.device, base: int) -> str:
    """Digest the signatures of what a set watches; hundreds of weights are compared once a set, not once a graph.

    A digest hides addresses from whoever moves a graph, so they are told relative to the device's range.
    """
    try:
        signatures = [signature(item, device, f"watched[{index}]", base) for index, item in enumerate(watched)]
    except UnstorableError as error:
        return f"{REFUSED}{error}"
    return hashlib.sha256(repr(signatures).encode()).hexdigest()


def _random(ground: _Ground, hook: Hook, call: _Call, advance: int | None) -> dict[str, int]:
    """Say what the graph consumes of the generator, how far warm-up moved it, and where seed and offset lie."""
    if advance is None:
        raise UnstorableError(f"{REFUSAL}: the warm-up seeds torch's generator")
    state = ground.state
    try:
        consumed = state.consumed(hook, ground.stream) if state.prove(hook, ground.stream) else None
    except RuntimeError as error:
        text = str(error).splitlines()[0]
        raise UnstorableError(f"{REFUSAL}: torch {torch.__version__} refused the probe: {text}") from error
    if consumed is None and (advance or not call.warm_ups):
        raise UnstorableError(f"{REFUSAL}: {state.reason}")
    return {
        "consumed": consumed or 0,
        "advance": advance,
        "seed": state.seed_address,
        "offset": state.offset_address,
    }


def _objection(metadata: Mapping[str, Any], call: _Call, ground: _Ground) -> str | None:
    """Say why a recorded graph must not be used for this call, or None."""
    if metadata.get("adapter") != "torch":
        return f"the graph was captured by adapter {metadata.get('adapter')}, not torch"
    if metadata["torch"] != torch.__version__:
        return f"captured with torch {metadata['torch']}, this is {torch.__version__}"
    if metadata["device"] != ground.device.index:
        return f"captured on device {metadata['device']}, this is {ground.device.index}"
    try:
        reason = difference(metadata["inputs"], _signatures(call, ground.device))
    except UnstorableError as error:
        return str(error)
    if reason is not None:
        return f"input{reason}" if reason.startswith("[") else reason
    if metadata["watched"] != ground.watched:
        return "a watched tensor differs from the capture's in address, shape or type"
    if metadata["layout"] != ground.layout:
        return "torch's live allocations before the first graph differ from those at capture"
    random, state = metadata["random"], ground.state
    if random["consumed"] and (random["seed"], random["offset"]) != (state.seed_address, state.offset_address):
        return f"{REFUSAL}: torch's generator keeps its state elsewhere than at capture"
    return None
