"""One pass of an engine's capture loop: what a capture stores of each graph, and what a restore answers instead.

The engine's loop runs in both. A restore leaves out the bodies of warm-ups and captures only, so what the loop does
beside them, it does in both, and torch's allocator meets the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from foundry import capi, graphs, witness
from foundry.capi import Hook, Mode
from foundry.engines.signatures import signature
from foundry.graphs import Answers, Found, difference
from foundry.torch import memory
from foundry.torch.graph import launcher
from foundry.torch.random_state import GeneratorState, generator_state
from foundry.torch.tensors import UnstorableError, describe, rebuild


class Pass:
    """Lays the ground for the graphs of a device, and makes their claims. `pins`: JSON that must be as at capture.

    `random_numbers`: graphs may take some, and follow torch's generator then. `expected`: the capture's `layout`.
    """

    def __init__(
        self,
        hook: Hook,
        engine: str,
        device: torch.device,
        pins: Mapping[str, Any],
        *,
        random_numbers: bool = False,
        expected: str | None = None,
    ) -> None:
        self.base = hook.range_base(device.index)
        self.layout = memory.settle_as(device, self.base, expected)
        self.hook, self.engine, self.device = hook, engine, device
        self.mode = hook.mode()
        self._checks = witness.check_wanted()
        self.stores = capi.stores(hook)
        """Whether graphs that are captured are stored."""
        self.state: GeneratorState = generator_state(device)
        self.pins = json.loads(json.dumps(pins))
        self._digest = hashlib.sha256(json.dumps(self.pins, sort_keys=True).encode()).hexdigest()
        self._answers: dict[str, Answers] = {}
        self._claimed: set[tuple[str, str]] = set()
        self.random: str | None = f"{engine} did not warm it up, so nothing tells of random numbers"
        """What stands against the graphs that are captured next, as far as the last warm-up showed."""
        self.random_numbers = random_numbers
        self.drew = False
        """Whether the last warm-up took random numbers that its graph may take."""
        if random_numbers and self.stores:
            # Here, since it captures graphs of its own.
            self.state.prove(hook, torch.cuda.Stream(device))
        self.warmed = False
        """Whether the last warm-up ran; a restore leaves out those of graphs that the archive has."""
        self._left_out = 0

    def answers(self, name: str) -> Answers:
        """Return what the archive answers for a set of the engine."""
        if name not in self._answers:
            self._answers[name] = Answers(f"{self.engine}/{name}", self.hook)
        return self._answers[name]

    @contextmanager
    def warm_up(self, name: str) -> Iterator[None]:
        """Keep what the block leaves behind away from what a restore has, too. Random numbers in it show."""
        generator = self.state.generator
        before = (generator.initial_seed(), generator.get_offset())
        with memory.scratch(self.hook, f"{self.engine}/{name} warm-up", self.device):
            torch.cuda.synchronize(self.device)
            yield
            torch.cuda.synchronize(self.device)
            memory.clear_workspaces()
        moved = (generator.initial_seed(), generator.get_offset()) != before
        self.drew = moved and self.random_numbers
        self.random = f"random numbers inside a graph of {self.engine}" if moved and not self.drew else None
        self.warmed, self._left_out = True, 0
        self.hook.count(graphs.WARM_UPS_RUN)

    def skip_warm_up(self) -> None:
        """Leave a warm-up out. It counts as skipped once a graph is given that it was for."""
        self.warmed = False
        self._left_out += 1

    def given(self) -> None:
        """Count a capture that a restore leaves out, and its warm-up."""
        self.hook.count(graphs.CAPTURES_SKIPPED)
        if self._left_out:
            self.hook.count(graphs.WARM_UPS_SKIPPED, self._left_out)
            self._left_out = 0

    def holds(self, name: str, key: str) -> bool:
        """Whether the archive has a graph of that name for this ground; its inputs are not looked at yet."""
        return self.usable(name, key) is not None

    def usable(self, name: str, key: str) -> Found | None:
        """Return the archive's graph of that name, None unless it has one for this ground."""
        found = self.answers(name).look_up(key) if self.restores else None
        if found is None or "refused" in found[1] or self._ground_objection(found[1]) is not None:
            return None
        return found

    def claim(self, name: str, key: str, inputs: Any = ()) -> Claim:
        """Make the claim for a capture that the engine is about to begin: its answer, or what will be stored of it."""
        answers, text = self._claim(name, key)
        with answers.blocked():
            try:
                told = signature(inputs, self.base)
            except UnstorableError as error:
                answers.give_up(text, str(error))
                return Claim(self, answers, text, inputs, None, None, refused=str(error))
            return self._asked(answers, text, inputs, told)

    def claim_usable(self, name: str, usable: Mapping[str, Found]) -> list[Claim]:
        """Make claims for captures whose inputs are known to be those that `usable` told of, and are not made."""
        claims = []
        with self.answers(name).blocked():
            for key, found in usable.items():
                answers, text = self._claim(name, key)
                # A key that is claimed once more names another graph.
                claims.append(self._asked(answers, text, (), found[1]["inputs"], found if text == key else None))
        return claims

    def recheck(self, claim: Claim, inputs: Any) -> Claim:
        """Compare the inputs that the engine made after all with those that a claim was told, and give it these."""
        reason, told = None, None
        try:
            told = signature(inputs, self.base)
            if told != claim.told:
                reason = f"an input is not the capture's: {difference(claim.told, told)}"
        except UnstorableError as error:
            reason = claim.refused = str(error)
        if claim.found is not None and reason is not None:
            self.hook.give_up(claim.found[0], reason)
            claim.answers.give_up(claim.key, reason)
            claim.found = None
        claim.inputs, claim.told = inputs, told
        return claim

    def _claim(self, name: str, key: str) -> tuple[Answers, str]:
        answers = self.answers(name)
        while (name, key) in self._claimed:
            key += " again"
        self._claimed.add((name, key))
        return answers, answers.claim(key)

    def _asked(self, answers: Answers, key: str, inputs: Any, told: Any, found: Found | None = None) -> Claim:
        if not self.restores:
            return Claim(self, answers, key, inputs, told, None)
        found = answers.restore(key, lambda metadata: self._objection(metadata, told), found=found)
        return Claim(self, answers, key, inputs, told, found)

    @property
    def restores(self) -> bool:
        """Whether the archive is asked."""
        return self.mode is Mode.RESTORE

    def _ground_objection(self, metadata: Mapping[str, Any]) -> str | None:
        if metadata.get("adapter") != self.engine:
            return f"the graph was captured by adapter {metadata.get('adapter')}, not {self.engine}"
        if metadata["torch"] != torch.__version__:
            return f"captured with torch {metadata['torch']}, this is {torch.__version__}"
        if metadata["device"] != self.device.index:
            return f"captured on device {metadata['device']}, this is {self.device.index}"
        if metadata["pins"] != self._digest:
            return f"another setting of {self.engine} than at capture"
        if metadata["layout"] != self.layout:
            return "torch's live allocations before the first graph differ from those at capture"
        return None

    def _objection(self, metadata: Mapping[str, Any], inputs: Any) -> str | None:
        reason = self._ground_objection(metadata)
        if reason is not None:
            return reason
        random = metadata.get("random")
        if random is not None and random != self._places(random["consumed"]):
            return "torch keeps the state of random numbers elsewhere than at capture"
        if metadata["inputs"] != inputs:
            return f"an input is not the capture's: {difference(metadata['inputs'], inputs)}"
        if self._checks:
            verdict = witness.Verdict(witness.MISSING, f"graphs of {self.engine} have no witness")
            self.hook.count(witness.counter_of(verdict.code))
            return str(verdict) if witness.refuses(verdict) else None
        return None

    def _places(self, consumed: int) -> dict[str, int]:
        """Say what a graph consumes of torch's generator, and where it reads seed and offset."""
        return {"consumed": consumed, "seed": self.state.seed_address, "offset": self.state.offset_address}

    def metadata(self, claim: Claim) -> dict[str, Any]:
        """Write down what a restore compares and rebuilds, or under `refused` why it must not use the graph."""
        refused = claim.refused or self.random
        if refused is None:
            return {
                "adapter": self.engine,
                "torch": torch.__version__,
                "device": self.device.index,
                "pins": self._digest,
                "layout": self.layout,
                "inputs": claim.told,
                "outputs": claim.outputs,
                **({"random": self._places(claim.consumed)} if claim.consumed else {}),
            }
        return {"adapter": self.engine, "refused": refused}


@dataclass
class Claim:
    """What is done at one capture of the engine. `found` is the archive's graph, None if the capture runs."""

    own: Pass
    answers: Answers
    key: str
    inputs: Any
    told: Any
    found: Found | None
    outputs: Any = None
    refused: str | None = None
    consumed: int = 0
    """How far a replay moves torch's generator."""
    _open: ExitStack = field(default_factory=ExitStack)
    _label: capi.Label | None = None

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Stand in for a captured body that gives outputs: run it and note them, or rebuild them."""
        if self.found is not None:
            return self.rebuilt()
        outputs = function(*args, **kwargs)
        if self.own.stores and self.refused is None:
            try:
                self.outputs = describe(outputs, self.own.device, self.inputs)
            except UnstorableError as error:
                self.refused = str(error)
        return outputs

    def rebuilt(self) -> Any:
        """Return the outputs of the graph that was found."""
        assert self.found is not None
        return rebuild(self.found[1]["outputs"], self.own.device, self.inputs)

    def graph(self) -> Any:
        """Return what `torch.cuda.graph` would have captured."""
        graph = torch.cuda.CUDAGraph()
        self._give(graph)
        return graph

    def _give(self, engines: Any) -> None:
        """Have the engine's graph object replay the one that was found."""
        assert self.found is not None
        own, (graph, metadata) = self.own, self.found
        consumed = int(metadata.get("random", {}).get("consumed", 0))
        engines.replay = launcher(own.hook, graph, own.device, own.state, consumed)
        own.given()

    def enter(self, context: Any, plain: Callable[[], Any]) -> Any:
        """Begin the capture under its name, or only do to torch's allocator what the begin of a capture does."""
        if self.found is not None:
            torch.cuda.empty_cache()
            return None
        if self.own.stores:
            self._label = self._open.enter_context(capi.labelled(self.own.hook, self.answers.name, self.key))
        try:
            return plain()
        except BaseException:
            self._open.close()
            raise

    def leave(self, context: Any, plain: Callable[[], Any], failed: bool) -> Any:
        """End the capture and describe it, or give the engine's graph object the archive's graph."""
        own = self.own
        if self.found is not None:
            if not failed:
                self._give(context.cuda_graph)
            return None
        with self._open:
            result = plain()
            own.hook.count(graphs.CAPTURES_RUN)
            if self._label is not None and not failed:
                if own.drew:
                    self._measure(context.capture_stream)
                metadata = own.metadata(self)
                if "refused" in metadata:
                    self.answers.give_up(self.key, metadata["refused"])
                self._label.metadata = json.dumps(metadata)
        return result

    def _measure(self, stream: Any) -> None:
        """Find out how much of torch's generator the graph consumes that was captured just now."""
        state = self.own.state
        try:
            if state.prove(self.own.hook, stream):
                self.consumed = state.consumed(self.own.hook, stream)
                return
            self.refused = f"random numbers inside the graph: {state.reason}"
        except RuntimeError as error:
            self.refused = f"random numbers inside the graph: {str(error).splitlines()[0]}"
