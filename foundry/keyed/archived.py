"""The archive's side of a cache: graphs that a restore gives, and graphs that a capture keeps."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from foundry import capi, graphs, witness
from foundry.capi import Hook, Mode
from foundry.errors import FoundryError
from foundry.witness import SpanSubject, Subject

Values = tuple[Any, ...]

MOST_UNKNOWN = 256
"""Keys that the archive is asked for in vain; then it is asked for no others."""
MOST_DEVICES = 16
LARGEST_RANGE = 1 << 42

UNKNOWN: Values = (object(),)
"""Moving values that equal none: nobody knows what the exec was made for."""


@dataclass
class _Set:
    """What a process knows of a set of the archive, for good: execs that a cache had before are not what they were."""

    moving: tuple[str, ...]
    inputs: dict[str, Any]
    owner: weakref.ref[Archived] | None = None
    known: dict[str, tuple[int, Values] | None] = field(default_factory=dict)
    """Execs and the moving values that they are for, by key; None: it is not for the cache's inputs."""
    labelled: set[str] = field(default_factory=set)

    def has(self, key: str) -> bool:
        """Tell whether the archive that is made has a graph of that key already."""
        return key in self.labelled or self.known.get(key) is not None


_sets: weakref.WeakKeyDictionary[Hook, dict[str, _Set]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class Archived:
    """Finds the graphs of one cache in the archive, and labels those that go there.

    Execs of the archive live as long as the process, so what an exec was last updated to is remembered when the cache
    drops it, and for the next cache of that name. Of several at once the first has the archive's graphs.
    """

    def __init__(
        self, name: str, hook: Hook, inputs: Mapping[str, Any], most_kept: int | None, moving: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.hook = hook
        self.inputs: dict[str, Any] = json.loads(json.dumps(dict(inputs)))
        self._answers = graphs.Answers(name, hook)
        self._most_kept = most_kept
        self._set = self._claim(moving)

    def _claim(self, moving: tuple[str, ...]) -> _Set | None:
        with _lock:
            sets = _sets.setdefault(self.hook, {})
            found = sets.setdefault(self.name, _Set(moving, self.inputs))
            if found.owner is not None and found.owner() is not None:
                return None
            for key, one in found.known.items():
                if found.inputs != self.inputs:
                    found.known[key] = None
                elif one is not None and found.moving != moving:
                    found.known[key] = one[0], UNKNOWN
            found.moving, found.inputs, found.owner = moving, self.inputs, weakref.ref(self)
            return found

    def close(self) -> None:
        """Leave the archive's graphs to the next cache of that name."""
        with _lock:
            if self._set is not None:
                self._set.owner = None
            self._set = None

    @property
    def reasons(self) -> dict[str, str]:
        """Why graphs were captured instead of restored, by key."""
        return self._answers.reasons

    def find(self, key: str, names: tuple[str, ...]) -> tuple[int, Values] | None:
        """Return the archive's exec and the moving values that it is for, or None."""
        if self._set is None or self.hook.mode() is not Mode.RESTORE or key in self.reasons:
            return None
        known = self._set.known
        if key in known:
            return known[key]
        if len(self.reasons) >= MOST_UNKNOWN:
            return None
        if self._most_kept is not None and not self._has(key):
            return None
        with self._answers.blocked():
            found = self._answers.restore(
                key,
                lambda metadata: graphs.difference(metadata.get("inputs"), self.inputs),
                self._subject(key) if witness.check_wanted() else None,
            )
            if found is None:
                return None
            handle, metadata = found
            try:
                known[key] = self.hook.exec(handle), self._moving(metadata, names)
            except FoundryError as error:
                self._answers.give_up(key, str(error))
                return None
        self.hook.count(graphs.WARM_UPS_SKIPPED)
        self.hook.count(graphs.CAPTURES_SKIPPED)
        return known[key]

    def _has(self, key: str) -> bool:
        """Tell whether the archive has a graph of that key. No warning: of dedicated execs, many are not there."""
        try:
            self.hook.find(self.name, key)
        except FoundryError as error:
            self.reasons[key] = str(error)
            return False
        return True

    def changed(self, key: str, moving: Values) -> None:
        """Remember what the archive's exec of that key was updated to."""
        known = self._set.known.get(key) if self._set is not None else None
        if self._set is not None and known is not None:
            self._set.known[key] = known[0], moving

    def portable(self, value: Any) -> Any:
        """Give a value as an archive can hold it: an address in a range of the hook's is told relative to that."""
        if type(value) is not int:
            return value
        bases = ((self.hook.range_base(device), device) for device in range(MOST_DEVICES))
        base, device = max((pair for pair in bases if 0 <= value - pair[0] < LARGEST_RANGE), default=(0, 0))
        return {"device": device, "offset": value - base} if base else value

    def _moving(self, metadata: Mapping[str, Any], names: tuple[str, ...]) -> Values:
        """Give the moving values of a capture, as this process has them."""
        recorded = metadata.get("moving")
        if not isinstance(recorded, dict) or set(recorded) != set(names):
            return UNKNOWN
        return tuple([self._here(recorded[name]) for name in names])

    def _here(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        base = self.hook.range_base(int(value.get("device", 0)))
        return base + int(value.get("offset", 0)) if base else None

    def _subject(self, key: str) -> graphs.Witnessed:
        """Give a subject that names no memory: a witness says so, and restores that need one give the graph up."""

        def subject(graph: int, metadata: Mapping[str, Any]) -> Subject:
            return SpanSubject(witness.DriverMemory(), (), self.name, key)

        return subject

    @contextmanager
    def recorded(self, key: str, moving: Mapping[str, Any]) -> Iterator[bool]:
        """Instantiate in the block. Yields whether the graph goes to the archive: its exec must then stay as it is.

        What a capture has of that key already stays, and it keeps `most_kept` graphs; another exec is made in a scratch
        phase and is not kept.
        """
        if not capi.stores(self.hook):
            yield False
        elif self._set is None or self._set.has(key) or len(self._set.labelled) == self._most_kept:
            with capi.scratch(self.hook, f"{self.name}/{key} again"):
                yield False
        else:
            with capi.labelled(self.hook, self.name, key) as label:
                yield True
                self._set.labelled.add(key)
                told = {name: self.portable(value) for name, value in moving.items()}
                metadata = {"adapter": "keyed", "inputs": self.inputs, "moving": told, "warm_ups": 1}
                if witness.witness_wanted():
                    metadata["witness"] = self._answers.make_witness(key, self._subject(key)(0, metadata))
                label.metadata = json.dumps(metadata)
        self.hook.count(graphs.CAPTURES_RUN)
