"""Twins from the same state, one through the graphs of a cache, one eager; compared after each round."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from foundry import capi, env, witness
from foundry.keyed.cache import Key, KeyedGraphs
from foundry.keyed.counts import Done
from foundry.keyed.driver import Record
from foundry.keyed.report import DIFFERENT, EQUAL, REFUSED, Report
from foundry.witness import Memory, Span


@dataclass(frozen=True)
class Round:
    """A pass: its key, what puts it on a stream, and what writes its inputs before that, if anything does.

    Both must do the same each time: each twin calls them, and each planted control.
    """

    key: Key
    record: Record
    prepare: Callable[[], object] = lambda: None


def wanted() -> bool:
    """Whether `foundry parity` started this process."""
    return bool(os.environ.get(env.PARITY))


def compare(
    cache: KeyedGraphs,
    rounds: Sequence[Round],
    *,
    state: Mapping[str, Span],
    outputs: Mapping[str, Span] | None = None,
    constant: Collection[str] = (),
    controls: Collection[str] | None = None,
    memory: Memory | None = None,
) -> Report:
    """Run the rounds through the cache and eagerly, each round from the same state, and compare all bytes.

    `state` is all that passes read and write, with their inputs; `outputs` is compared first, to be named first. The
    state is put back at the end. The rounds must cross every seam of the key: each name but those in `constant` takes
    two values at least. If the cache was so warm that no round was captured, they run once more through an empty twin
    of it.

    Then a control is planted for each name in `controls`, every moving one if not given (of a key without any, every
    one of its shape): the rounds run again through a cache whose key leaves that value out, and must differ.

    Under `foundry parity` the report goes there, too.
    """
    twins = _Twins(cache, rounds, state, outputs or {}, memory if memory is not None else witness.DriverMemory())
    with _phase(cache):
        report = _judge(twins, set(constant), controls)
    path = os.environ.get(env.PARITY)
    if path:
        with Path(path).open("a") as file:
            file.write(report.as_json() + "\n")
    return report


def _phase(cache: KeyedGraphs) -> AbstractContextManager[None]:
    """Keep what parity makes out of an archive that is being captured."""
    if capi.stores(cache.hook):
        return capi.scratch(cache.hook, f"{cache.name} parity")
    return nullcontext()


def _judge(twins: _Twins, constant: set[str], controls: Collection[str] | None) -> Report:
    cache = twins.cache
    names = cache.shape + cache.moving
    unknown = sorted((constant | set(controls or ())) - set(names))
    if unknown:
        raise ValueError(f"the key has no {', '.join(unknown)}")
    crossed = [name for name in names if len({one.key[name] for one in twins.rounds}) > 1]
    missing = [name for name in names if name not in crossed and name not in constant]
    total = _Total(twins.cache.name, seams=len(crossed))
    if missing:
        return total.report(REFUSED, f"no round crosses a seam of {', '.join(missing)}")
    difference = twins.run(cache, total)
    if difference is None and not total.done[Done.CAPTURED]:
        again = cache.twin()
        try:
            difference = twins.run(again, total)
        finally:
            again.empty()
    if difference is not None:
        return total.report(DIFFERENT, difference)
    kinds = [Done.REPLAYED, Done.CAPTURED]
    if cache.moving and not cache.dedicated:
        kinds.insert(1, Done.UPDATED)
    absent = [kind.value for kind in kinds if not total.done[kind]]
    if absent:
        return total.report(REFUSED, f"no round was {' or '.join(absent)}")
    for name in controls if controls is not None else cache.moving or cache.shape:
        total.controls += 1
        planted = cache.twin(without=name)
        try:
            if twins.run(planted, _Total(cache.name), left_out=name) is not None:
                total.caught += 1
            elif not total.passed:
                total.passed = name
        finally:
            planted.empty()
    if not total.controls:
        return total.report(REFUSED, "no control was planted")
    if total.passed:
        why = f"without {total.passed} in the key all is equal, too; does a round change {total.passed} alone?"
        return total.report(REFUSED, f"the control passes: {why}")
    return total.report(EQUAL, "")


@dataclass
class _Total:
    name: str
    seams: int = 0
    bytes: int = 0
    controls: int = 0
    caught: int = 0
    passed: str = ""
    done: dict[Done, int] = field(default_factory=lambda: dict.fromkeys(Done, 0))

    def report(self, verdict: str, reason: str) -> Report:
        return Report(
            self.name,
            verdict,
            rounds=sum(self.done.values()),
            eager=self.done[Done.EAGER],
            captured=self.done[Done.CAPTURED],
            updated=self.done[Done.UPDATED],
            replayed=self.done[Done.REPLAYED],
            bytes=self.bytes,
            seams=self.seams,
            controls=self.controls,
            caught=self.caught,
            reason=reason,
        )


class _Twins:
    """Two states that were equal before each round. They share the device's memory by turns."""

    def __init__(
        self,
        cache: KeyedGraphs,
        rounds: Sequence[Round],
        state: Mapping[str, Span],
        outputs: Mapping[str, Span],
        memory: Memory,
    ) -> None:
        if not state:
            raise ValueError("`state` names no memory")
        self.cache = cache
        self.rounds = rounds
        self._state = state
        self._outputs = outputs
        self._memory = memory

    def run(self, cache: KeyedGraphs, total: _Total, *, left_out: str | None = None) -> str | None:
        """Run all rounds, and say what differed first, or None."""
        first = before = self._read(self._state)
        try:
            for number, one in enumerate(self.rounds):
                key = {name: value for name, value in one.key.items() if name != left_out}
                one.prepare()
                done = cache.run(key, one.record)
                total.done[done] += 1
                through = self._result()
                self._write(before)
                one.prepare()
                one.record(cache.stream)
                eager = self._result()
                total.bytes += sum(map(len, through.values()))
                difference = _first(through, eager)
                if difference is not None:
                    if left_out is None and not self._steady(one, cache, before, eager):
                        difference += ", and two eager passes differ, too"
                    return f"round {number + 1} ({done.value}), {difference}"
                before = {name: eager[f"state {name}"] for name in self._state}
        finally:
            self._write(first)
        return None

    def _steady(self, one: Round, cache: KeyedGraphs, before: Mapping[str, bytes], eager: Mapping[str, bytes]) -> bool:
        """Tell whether another eager pass from the same state gives the same."""
        self._write(before)
        one.prepare()
        one.record(cache.stream)
        return self._result() == eager

    def _read(self, spans: Mapping[str, Span]) -> dict[str, bytes]:
        self._memory.wait()
        return {name: self._memory.read(span.address, span.size) for name, span in spans.items()}

    def _write(self, saved: Mapping[str, bytes]) -> None:
        self._memory.wait()
        for name, data in saved.items():
            self._memory.write(self._state[name].address, data)
        self._memory.wait()

    def _result(self) -> dict[str, bytes]:
        found = {f"output {name}": data for name, data in self._read(self._outputs).items()}
        return found | {f"state {name}": data for name, data in self._read(self._state).items()}


def _first(through: Mapping[str, bytes], eager: Mapping[str, bytes]) -> str | None:
    for name, data in through.items():
        if data != eager[name]:
            pairs = enumerate(zip(data, eager[name], strict=True))
            place = next(index for index, (one, two) in pairs if one != two)
            graph, plain = (found[place : place + 8].hex() for found in (data, eager[name]))
            return f"{name} at byte {place}: {graph} through the graph, {plain} eagerly"
    return None
