"""Replay against eager, from the same state, on other inputs than those captured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from foundry import witness
from foundry.torch import memory, spans
from foundry.torch.witness import Place, TorchSubject


@dataclass(frozen=True)
class Parity:
    """What a comparison of a graph with its function found.

    `varied` names inputs and watched tensors that took other values than those that stood there. `compared` counts
    bytes of outputs. `difference` is the first one; `reproducible` is false if the function differs from itself, too.
    """

    key: str
    rounds: int
    compared: int
    varied: tuple[str, ...]
    difference: str | None
    reproducible: bool = True

    @property
    def equal(self) -> bool:
        """Whether all was equal, and that says something: it was tried, on other values."""
        return self.difference is None and self.rounds > 0 and bool(self.varied)


@dataclass(frozen=True)
class _Result:
    """What a run gave: places and bytes (or constants) of outputs, and digests of what it wrote."""

    outputs: dict[str, Any]
    kinds: dict[str, str]
    written: dict[str, str]

    @property
    def size(self) -> int:
        return sum(len(value) for value in self.outputs.values() if isinstance(value, bytes))


@dataclass(frozen=True)
class Held:
    """A graph as its set holds it."""

    key: str
    replay: Callable[[], None]
    inputs: Sequence[Any]
    outputs: Any


def compare(
    place: Place, held: Held, function: Callable[..., Any], given: Sequence[Sequence[Any]] | None, rounds: int
) -> Parity:
    """Compare in rounds. Raises nothing but LostError: what goes wrong is the difference."""
    subject = TorchSubject(place, "parity", held.key)
    subject.attach(held.outputs, held.replay, random=True)
    run = _Rounds(subject, held, function)
    done = compared = 0
    varied: dict[str, None] = {}
    difference: str | None = None
    reproducible = True
    try:
        with subject.kept():
            for number in range(rounds if given is None else len(given)):
                values = None if given is None else given[number]
                graph = run.replayed(number, values)
                varied.update(dict.fromkeys(run.varied))
                eager = run.eager(number, values)
                compared += graph.size
                done += 1
                difference = _first(graph, eager)
                if difference is not None:
                    reproducible = _first(eager, run.eager(number, values)) is None
                    break
    except witness.LostError:
        raise
    except Exception as error:
        difference = f"not compared: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if difference is None and not varied:
        difference = "no input took another value: give `inputs`"
    return Parity(held.key, done, compared, tuple(varied), difference, reproducible)


class _Rounds:
    """Runs graph and function from the same state."""

    def __init__(self, subject: TorchSubject, held: Held, function: Callable[..., Any]) -> None:
        self._subject = subject
        self._held = held
        self._function = function
        self._chosen: Any = None
        self.varied: list[str] = []

    def _state(self, number: int, values: Sequence[Any] | None) -> None:
        """Fill the memory; another round has other numbers. Values that were given replace those of inputs."""
        if self._chosen is None:
            self._chosen = self._subject.choose()
        self._subject.put({**self._chosen, "seed": self._chosen["seed"] + 1_000_003 * (number + 1)})
        self.varied = [span.name for span in self._subject.state if span.dtype]
        if values is None:
            return
        targets = dict(spans.leaves(tuple(self._held.inputs), "input"))
        given = dict(spans.leaves(tuple(values), "input"))
        if targets.keys() != given.keys():
            raise ValueError("`inputs` nests otherwise than the graph's")
        for name, value in given.items():
            target = targets[name]
            if not isinstance(target, torch.Tensor):
                if target != value:
                    raise ValueError(f"{name} is {value!r}; the graph was captured for {target!r}")
            elif tuple(target.shape) != tuple(value.shape):
                raise ValueError(f"{name} has another shape than the graph's")
            elif spans.write(target, value):
                self.varied.append(name)

    def replayed(self, number: int, values: Sequence[Any] | None) -> _Result:
        """Replay the graph."""
        self._state(number, values)
        self._held.replay()
        return self._result(self._held.outputs)

    def eager(self, number: int, values: Sequence[Any] | None) -> _Result:
        """Run the function. Nothing of it stays: neither its memory nor a library's."""
        self._state(number, values)
        try:
            return self._result(self._function(*self._held.inputs))
        finally:
            memory.clear_workspaces()

    def _result(self, outputs: Any) -> _Result:
        torch.cuda.synchronize(self._subject.place.device)
        found: dict[str, Any] = {}
        kinds: dict[str, str] = {}
        for name, item in spans.leaves(outputs, "output"):
            if isinstance(item, torch.Tensor):
                found[name] = spans.host_bytes(item)
                kinds[name] = f"{item.dtype} {tuple(item.shape)}"
            else:
                found[name] = item
                kinds[name] = type(item).__qualname__
        return _Result(found, kinds, self._subject.written())


def _first(one: _Result, other: _Result) -> str | None:
    """Say where two results differ first, or None."""
    for name in [*one.outputs, *other.outputs]:
        kinds = one.kinds.get(name, "nothing"), other.kinds.get(name, "nothing")
        if kinds[0] != kinds[1]:
            return f"{name}: {kinds[0]} in the graph, {kinds[1]} from the function"
        values = one.outputs[name], other.outputs[name]
        if values[0] != values[1]:
            if isinstance(values[0], bytes) and isinstance(values[1], bytes):
                return f"{name}: {_bytes(*values)}"
            return f"{name}: {values[0]!r} in the graph, {values[1]!r} from the function"
    for name in [*one.written, *other.written]:
        if one.written.get(name) != other.written.get(name):
            return f"{name.removeprefix('what it wrote to ')}: other bytes stand there after the replay"
    return None


def _bytes(one: bytes, other: bytes) -> str:
    place = next(index for index, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
    begin = place - place % 8
    count = sum(a != b for a, b in zip(one, other, strict=True))
    return (
        f"{count} of {len(one)} bytes differ, first at byte {place}: "
        f"{one[begin : begin + 8].hex()} in the graph, {other[begin : begin + 8].hex()} from the function"
    )
