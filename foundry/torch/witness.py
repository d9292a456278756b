"""The memory of a PyTorch graph, as a witness and `parity` need it: stated, replayed on, and put back."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from foundry import witness
from foundry.capi import Hook
from foundry.torch import memory, spans
from foundry.torch.spans import Fill, Span
from foundry.witness import LARGEST, LostError, UnfitError

SPARE = 256 << 20
"""Device memory that must stay free beside the copies."""


@dataclass
class Place:
    """Where a graph runs, and what lies there. `ranges` remembers those of a set, so that each is looked for once."""

    hook: Hook
    device: torch.device
    stream: torch.cuda.Stream
    inputs: Sequence[Any]
    watched: Sequence[Any]
    others: Sequence[Any] = ()
    ranges: dict[Span, tuple[float, float]] = field(default_factory=dict)


class TorchSubject:
    """A graph's memory: what it is given, what it watches, and the outputs of its set.

    Made before the warm-up. `attach` adds what is known when the graph is there.
    """

    def __init__(self, place: Place, *names: str) -> None:
        self.place = place
        self.state = spans.spans_of(self._given())
        self._name = "/".join(names)
        self._seed = witness.seed_of(*names)
        self._expected: list[Fill | torch.Tensor] = []
        self._before: dict[int, torch.Tensor] = {}
        self._unfit = ""
        self._outputs: Any = None
        self._replay: Callable[[], None] = lambda: None
        self._random = False
        self._poisoned: list[Span] = []
        try:
            self._remember()
        except (UnfitError, RuntimeError) as error:
            self._before.clear()
            self._unfit = str(error).splitlines()[0]

    def _given(self) -> list[tuple[str, torch.Tensor]]:
        place = self.place
        return [*spans.tensors(tuple(place.inputs), "input"), *spans.tensors(tuple(place.watched), "watched")]

    def _remember(self) -> None:
        """Keep what is not filled as it is now. What a warm-up leaves there, a restore would not find."""
        kept = [index for index, span in enumerate(self.state) if not span.dtype]
        size = sum(self.state[index].size for index in kept)
        if size > LARGEST:
            raise UnfitError(f"{size} bytes of integers would have to be copied for a witness, {LARGEST} is the most")
        with self._apart():
            torch.cuda.synchronize(self.place.device)
            for index in kept:
                self._before[index] = spans.save(self.state[index], self.place.device)

    def attach(self, outputs: Any, replay: Callable[[], None], *, random: bool) -> None:
        """Add the graph. `random`: it draws random numbers."""
        self._outputs, self._replay, self._random = outputs, replay, random
        self._poisoned = [part for span in spans.spans_of(_named(outputs)) for part in spans.outside(span, self.state)]

    @contextlib.contextmanager
    def _apart(self) -> Iterator[None]:
        place = self.place
        with contextlib.ExitStack() as stack:
            if memory.unsupported() is None:
                stack.enter_context(memory.scratch(place.hook, f"{self._name} witness", place.device))
            stack.enter_context(torch.cuda.stream(place.stream))
            yield

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Put memory and generator back at the end."""
        device = self.place.device
        all_spans = spans.spans_of(
            [*self._given(), *spans.tensors(list(self.place.others), "other"), *_named(self._outputs)]
        )
        size = sum(span.size for span in all_spans)
        if not self._unfit and size + SPARE > (free := spans.room(device)):
            self._unfit = f"{size} bytes would have to be kept beside themselves, and {free} are free"
        if self._unfit:
            raise UnfitError(self._unfit)
        generator: Any = torch.cuda.default_generators[device.index]
        with self._apart():
            torch.cuda.synchronize(device)
            saved = [spans.save(span, device) for span in all_spans]
            stands = (generator.initial_seed(), generator.get_offset()) if self._random else None
            try:
                yield
            finally:
                try:
                    torch.cuda.synchronize(device)
                    while saved:
                        spans.put(all_spans[len(saved) - 1], device, saved.pop())
                    torch.cuda.synchronize(device)
                except RuntimeError as error:
                    text = str(error).splitlines()[0]
                    raise LostError(f"memory could not be put back after a replay for a witness: {text}") from error
                finally:
                    if stands is not None:
                        generator.manual_seed(stands[0])
                        generator.set_offset(stands[1])

    def choose(self) -> Any:
        """Give the seed, and a range for each span that is filled."""
        return {"seed": self._seed, "ranges": [self._range(span) for span in self.state]}

    def _range(self, span: Span) -> list[float] | None:
        if not span.dtype:
            return None
        if span not in self.place.ranges:
            self.place.ranges[span] = spans.bounds(span, self.place.device)
        return list(self.place.ranges[span])

    def put(self, chosen: Any) -> Any:
        """Fill what can be filled, put the rest as it was before the warm-up."""
        device, seed, ranges = self.place.device, int(chosen["seed"]), chosen["ranges"]
        if [pair is None for pair in ranges] != [not span.dtype for span in self.state]:
            raise UnfitError("the graph's inputs cover other memory than at the capture")
        filled = hashlib.sha256()
        kept: dict[str, str] = {}
        self._expected = []
        for index, (span, pair) in enumerate(zip(self.state, ranges, strict=True)):
            if pair is None:
                spans.put(span, device, self._before[index])
                kept[span.name] = hashlib.sha256(spans.host_bytes(self._before[index])).hexdigest()
                self._expected.append(self._before[index])
            else:
                fill = Fill(seed + index, float(pair[0]), float(pair[1]))
                spans.fill(span, device, fill)
                # Torch may draw other numbers from a seed: on another GPU, or in another version.
                filled.update(spans.sample(span, device))
                self._expected.append(fill)
        for span in self._poisoned:
            spans.poison(span, device)
        if self._random:
            torch.cuda.default_generators[device.index].manual_seed(seed)
        torch.cuda.synchronize(device)
        return {"spans": [[span.name, span.size] for span in self.state], "kept": kept, "filled": filled.hexdigest()}

    def replay(self) -> dict[str, str]:
        """Replay, and digest the outputs and what the replay wrote to inputs and watched tensors."""
        self._replay()
        torch.cuda.synchronize(self.place.device)
        outputs = list(_named(self._outputs))
        if (size := sum(tensor.numel() * tensor.dtype.itemsize for _, tensor in outputs)) > LARGEST:
            raise UnfitError(f"the outputs have {size} bytes, and {LARGEST} is the most for a witness")
        found = {name: hashlib.sha256(spans.host_bytes(tensor)).hexdigest() for name, tensor in outputs}
        return {**found, **self.written()}

    def written(self) -> dict[str, str]:
        """Digest what stands otherwise in the state than `put` left it."""
        found: dict[str, str] = {}
        left = LARGEST
        for span, expected in zip(self.state, self._expected, strict=True):
            change = spans.changes(span, self.place.device, expected)
            if change is not None:
                left -= change.count
                found[f"what it wrote to {span.name}"] = f"{change.count} {change.digest}"
        if left < 0:
            raise UnfitError(f"it writes more than {LARGEST} bytes of its inputs and watched tensors")
        return found


def _named(outputs: Any) -> Iterator[tuple[str, torch.Tensor]]:
    return spans.tensors(outputs, "output")
