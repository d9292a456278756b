"""Graphs by key, for programs on the driver API: captured on a plain start, given back by the hook on a restore.

`GraphSet` is for programs that use `cuda.bindings` or any other binding; `foundry.torch` builds on `Answers`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from foundry import capi, witness
from foundry.capi import Hook, Mode
from foundry.errors import FoundryError
from foundry.witness import Span as Span
from foundry.witness import Subject

log = logging.getLogger("foundry")

WARM_UPS_RUN = "warm_ups_run"
WARM_UPS_SKIPPED = "warm_ups_skipped"
CAPTURES_RUN = "captures_run"
CAPTURES_SKIPPED = "captures_skipped"
BLOCKED = "graphs_blocked_ns"
"""Names of the totals that adapters add to the report. BLOCKED is the time that the program waited for its graphs."""

Check = Callable[[Mapping[str, Any]], str | None]
"""Reads a graph's metadata and says why the graph must not be used here, or None."""
Witnessed = Callable[[int, Mapping[str, Any]], Subject]
"""Makes the subject of a graph that is built, from its handle and metadata."""


Found = tuple[int, dict[str, Any]]
"""Handle and metadata of a graph of the archive."""


class Answers:
    """What the archive answers for one set of graphs, and why it answers no. Shared by all adapters."""

    def __init__(self, name: str, hook: Hook) -> None:
        self.name = name
        self.hook = hook
        self.reasons: dict[str, str] = {}
        self._keys: set[str] = set()
        self._told: set[str] = set()

    def claim(self, key: object) -> str:
        """Return the key as text; a set holds each key once."""
        text = str(key)
        if text in self._keys:
            raise ValueError(f"key {text!r} is already in graph set {self.name!r}")
        self._keys.add(text)
        return text

    def recorded(self, key: str) -> dict[str, Any]:
        """Return the metadata that the archive has of a graph; empty if there is none, or nothing is restored."""
        if self.hook.mode() is not Mode.RESTORE:
            return {}
        found = self.look_up(key)
        return {} if found is None else found[1]

    def look_up(self, key: str) -> Found | None:
        """Find a graph in the archive that is restored, whether or not it is usable; None if there is none."""
        try:
            return self._find(key)
        except FoundryError:
            return None

    def _find(self, key: str) -> Found:
        graph = self.hook.find(self.name, key)
        return graph, _parse(self.hook.metadata(graph))

    def restore(
        self,
        key: str,
        check: Check,
        subject: Witnessed | None = None,
        *,
        found: Found | None = None,
    ) -> Found | None:
        """Return a graph that is built and proven usable, or None with `reasons[key]` set.

        With `subject` the graph is compared with its witness. `found` is what `look_up` gave, if it was asked before.
        """
        graph = None
        try:
            graph, metadata = self._find(key) if found is None else found
            reason = metadata.get("refused") or check(metadata)
            if reason is None:
                self.hook.wait(graph)
                reason = self._compared(key, metadata, subject and subject(graph, metadata))
            if reason is None:
                return graph, metadata
        except FoundryError as error:
            reason = str(error) or type(error).__name__
            graph = None
        if graph is not None:
            self.hook.give_up(graph, str(reason))
        self.give_up(key, str(reason))
        return None

    def _compared(self, key: str, metadata: Mapping[str, Any], subject: Subject | None) -> str | None:
        """Compare a graph with its witness, and say why it must not be used, or None."""
        if subject is None:
            return None
        verdict = witness.compare(subject, metadata.get("witness"))
        self.hook.count(witness.counter_of(verdict.code))
        if witness.refuses(verdict):
            return str(verdict)
        self._tell(key, verdict)
        return None

    def make_witness(self, key: str, subject: Subject) -> dict[str, Any]:
        """Make the witness of a graph that was just captured."""
        made = witness.make(subject)
        verdict = witness.outcome_of(made)
        self.hook.count(witness.counter_of(verdict.code))
        self._tell(key, verdict)
        return made

    def _tell(self, key: str, verdict: witness.Verdict) -> None:
        """Log a witness that cannot be made or compared; each reason once a set."""
        if verdict.code not in (None, witness.MADE) and str(verdict) not in self._told:
            self._told.add(str(verdict))
            log.warning("graph %s of set %s is not checked: %s", key, self.name, verdict)

    def give_up(self, key: str, reason: str) -> None:
        """Note why a graph is captured anew; each reason is logged once a set."""
        if self.hook.mode() is not Mode.OFF and reason not in self.reasons.values():
            log.warning("graph %s of set %s is captured, not restored: %s", key, self.name, reason)
        self.reasons[key] = reason

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """Count the time of the block as time that the program waited for its graphs."""
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            self.hook.count(BLOCKED, time.perf_counter_ns() - start)


def _parse(text: str | None) -> dict[str, Any]:
    if not text:
        return {"refused": "the graph has no metadata: its capture did not end well"}
    try:
        metadata = json.loads(text)
    except ValueError:
        return {"refused": "the graph's metadata is not JSON"}
    return metadata if isinstance(metadata, dict) else {"refused": "the graph's metadata is not an object"}


def difference(recorded: object, found: object, path: str = "") -> str | None:
    """Say where two JSON values differ first, or None."""
    if repr(recorded) == repr(found):
        return None
    if isinstance(recorded, dict) and isinstance(found, dict) and recorded.keys() == found.keys():
        pairs = [(f"{path}.{name}" if path else str(name), recorded[name], found[name]) for name in recorded]
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        pairs = [(f"{path}[{index}]", one, two) for index, (one, two) in enumerate(zip(recorded, found, strict=True))]
    elif type(recorded) is type(found) and recorded == found:
        return None
    else:
        return f"{path or 'value'}: recorded {_short(recorded)}, found {_short(found)}"
    for where, one, two in pairs:
        reason = difference(one, two, where)
        if reason is not None:
            return reason
    return None


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Graph:
    """A graph that can be launched, restored or captured. `reason` says why a restore did not give it."""

    def __init__(self, key: str, launch: Callable[[int], object], *, restored: bool, reason: str | None) -> None:
        self.key = key
        self.restored = restored
        self.reason = reason
        self._launch = launch

    def launch(self, stream: Any) -> None:
        """Launch the graph on a stream: the driver's handle, or an object that `int` turns into it."""
        self._launch(int(stream))


class GraphSet:
    """Named graphs of a program on the driver API.

    Captures must be made in the same order in every start, largest first where they share memory.
    """

    def __init__(self, name: str, *, hook: Hook | None = None, memory: witness.Memory | None = None) -> None:
        self.hook = hook if hook is not None else capi.load()
        self._memory = memory
        self._answers = Answers(name, self.hook)
        self.name = name

    @property
    def reasons(self) -> dict[str, str]:
        """Why graphs were captured instead of restored, by key."""
        return self._answers.reasons

    def capture_or_restore(
        self,
        key: object,
        *,
        capture: Callable[[], Callable[[int], object]],
        warm_up: Callable[[], object] | None = None,
        inputs: Mapping[str, Any] | None = None,
        spans: Sequence[Span] = (),
    ) -> Graph:
        """Give the graph of that key: from the archive where it can be proven equal, else by warm-up and capture.

        `warm_up` runs the work once outside a capture and leaves the device idle. `capture` captures and instantiates
        it, and returns a function that launches the exec on a stream handle. `inputs` is JSON that must be the same at
        capture and restore: the addresses that the graph reads and writes, sizes, anything it was built for.

        `spans` names the memory that the graph reads and writes, for `foundry capture --witness` and
        `foundry restore --check`: all of it is put back. The driver's context must be current, and no capture begun.
        """
        text = self._answers.claim(key)
        with self._answers.blocked():
            recorded = json.loads(json.dumps(dict(inputs or {})))
            mode = self.hook.mode()
            if mode is Mode.RESTORE:
                subject = self._restored_subject(text, spans) if witness.check_wanted() else None
                found = self._answers.restore(
                    text, lambda metadata: difference(metadata.get("inputs"), recorded), subject
                )
                if found is not None:
                    graph, metadata = found
                    self.hook.count(WARM_UPS_SKIPPED, int(metadata.get("warm_ups", 0)))
                    self.hook.count(CAPTURES_SKIPPED)
                    return Graph(text, lambda stream: self.hook.launch(graph, stream), restored=True, reason=None)
            metadata = {"adapter": "driver", "inputs": recorded, "warm_ups": 0 if warm_up is None else 1}
            launch = self._capture(text, mode, warm_up, capture, metadata, spans)
            return Graph(text, launch, restored=False, reason=self.reasons.get(text))

    def _subject(self, key: str, spans: Sequence[Span]) -> witness.SpanSubject:
        memory = self._memory if self._memory is not None else witness.DriverMemory()
        return witness.SpanSubject(memory, spans, self.name, key)

    def _restored_subject(self, key: str, spans: Sequence[Span]) -> Witnessed:
        def subject(graph: int, metadata: Mapping[str, Any]) -> Subject:
            made = self._subject(key, spans)
            made.launch = lambda: self.hook.launch(graph, 0)
            return made

        return subject

    def _capture(
        self,
        key: str,
        mode: Mode,
        warm_up: Callable[[], object] | None,
        capture: Callable[[], Callable[[int], object]],
        metadata: dict[str, Any],
        spans: Sequence[Span],
    ) -> Callable[[int], object]:
        stores = capi.stores(self.hook)
        wanted = stores and witness.witness_wanted()
        subject = self._subject(key, spans) if wanted else None
        if warm_up is not None:
            if mode is Mode.OFF:
                warm_up()
            else:
                with capi.scratch(self.hook, f"{self.name}/{key} warm-up"):
                    warm_up()
            self.hook.count(WARM_UPS_RUN)
        if stores:
            with capi.labelled(self.hook, self.name, key) as label:
                launch = capture()
                if subject is not None:
                    subject.launch = lambda: launch(0)
                    with capi.scratch(self.hook, f"{self.name}/{key} witness"):
                        metadata["witness"] = self._answers.make_witness(key, subject)
                label.metadata = json.dumps(metadata)
        else:
            launch = capture()
        self.hook.count(CAPTURES_RUN)
        return launch


def commit(hook: Hook | None = None) -> None:
    """Say that the program is ready to serve: what was captured so far is whole. Does nothing on a plain start."""
    hook = hook if hook is not None else capi.load()
    if hook.mode() is not Mode.OFF:
        try:
            hook.commit()
        except FoundryError as error:
            log.warning("foundry could not commit: %s", error)
