"""Graphs by key: replayed for the same key, updated in place for new moving values, captured for new launches."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from foundry import capi, graphs
from foundry.capi import AbsentHook, Hook, Mode
from foundry.keyed.archived import UNKNOWN, Archived, Values
from foundry.keyed.counts import Counts, Done
from foundry.keyed.driver import OUT_OF_MEMORY, CallError, Driver, LibraryDriver, Record

log = logging.getLogger("foundry")

CHECK_EVERY = 64
"""Passes between two looks at the free memory, besides the look before each capture."""

Key = Mapping[str, Any]


@dataclass
class _Held:
    """An exec and the moving values that it launches."""

    executable: int
    moving: Values
    key: str
    owned: bool = True
    """The cache made it, and destroys it."""
    kept: bool = False
    """A capture stores what it was made from, so it must not be updated."""


class KeyedGraphs:
    """A cache of at most `most` held graphs, for one stream and one thread at a time.

    `shape` names the values that decide which launches a pass makes: each combination of them has an exec of its own.
    `moving` names every other host value that the launches take. Where those differ from what the exec was made for,
    the pass is recorded again and the exec is updated in place. An exec that was ever updated stays slower than one
    that was not: with `dedicated=N` none is updated, and up to N execs of a shape are held, one for each combination
    of moving values.

    A shape runs eagerly once before it is first recorded. `floor` is in bytes of free device memory: below it the cache
    empties itself, and passes run eagerly until there is more. `inputs` is JSON that must be the same at capture and
    restore: addresses that no key names, sizes, the build of the kernels.

    Of several caches of one name at once, the first has the archive's graphs, until it is closed or gone.
    """

    def __init__(
        self,
        name: str,
        *,
        stream: Any,
        shape: Sequence[str],
        moving: Sequence[str] = (),
        most: int = 64,
        dedicated: int = 0,
        floor: int = 0,
        inputs: Mapping[str, Any] | None = None,
        hook: Hook | None = None,
        driver: Driver | None = None,
    ) -> None:
        if most < 1 or dedicated < 0 or floor < 0:
            raise ValueError("`most` is at least 1, `dedicated` and `floor` are not negative")
        if len({*shape, *moving}) != len(shape) + len(moving):
            raise ValueError("a name stands twice among `shape` and `moving`")
        self.name = name
        self.shape, self.moving = tuple(shape), tuple(moving)
        self.stream = int(stream)
        self.most, self.dedicated, self.floor = most, dedicated, floor
        self.counts = Counts()
        self.driver: Driver = driver if driver is not None else LibraryDriver()
        # Dedicated execs may be for values that never come back.
        self._archived = Archived(
            name, hook if hook is not None else capi.load(), inputs or {}, most if dedicated else None, self.moving
        )
        self._held: OrderedDict[tuple[Values, Values], _Held] = OrderedDict()
        self._ran: OrderedDict[Values, None] = OrderedDict()
        self._unfit: dict[Values, str] = {}
        self._passes = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def hook(self) -> Hook:
        """The hook of this process, or one that is absent."""
        return self._archived.hook

    @property
    def reasons(self) -> dict[str, str]:
        """Why graphs were captured instead of restored, by key."""
        return self._archived.reasons

    @property
    def unfit(self) -> dict[Values, str]:
        """Why passes of a shape always run eagerly, by its values."""
        return dict(self._unfit)

    def run(self, key: Key, record: Record) -> Done:
        """Run a pass on the stream: `key` has a value for each name, `record` puts the pass on the stream.

        Values are numbers, text or truth values. An error of `record` in an eager pass is the caller's; a pass that
        cannot be recorded runs eagerly, and so do all of its shape from then on.
        """
        shape, moving = self._split(key)
        self._passes += 1
        if self.floor and self._passes % CHECK_EVERY == 0:
            self._short_of_memory()
        place = (shape, moving if self.dedicated else ())
        held = self._held.get(place) or self._restored(place, moving)
        if held is not None and held.moving == moving:
            self._held.move_to_end(place)
            self.driver.launch(held.executable, self.stream)
            self.counts.replayed += 1
            return Done.REPLAYED
        if shape in self._ran and shape not in self._unfit:
            done = self._renew(place, moving, record)
            if done is not None:
                self.driver.launch(self._held[place].executable, self.stream)
                return done
        self._run_eagerly(shape, record)
        return Done.EAGER

    def warm(self, key: Key, record: Record) -> bool:
        """Have a graph ready for that shape: the archive's, or one of a pass that runs in a scratch phase.

        Returns whether there is one. A restore skips what only a capture ran, so warm the same keys in the same order
        in every start, largest first, and call `foundry.graphs.commit` behind that. The pass that runs here leaves what
        it writes.
        """
        shape, moving = self._split(key)
        place = (shape, moving if self.dedicated else ())
        if place in self._held or self._restored(place, moving) is not None:
            return True
        if shape not in self._ran:
            with self._phase(place):
                self._run_eagerly(shape, record)
                self.driver.wait(self.stream)
            self.hook.count(graphs.WARM_UPS_RUN)
        return shape not in self._unfit and self._renew(place, moving, record) is not None

    def empty(self) -> None:
        """Drop all execs. Those of the archive are kept by the hook, and are found again."""
        while self._held:
            self._drop(next(iter(self._held)))

    def close(self) -> None:
        """Drop all execs, and leave those of the archive to the next cache of that name."""
        self.empty()
        self._archived.close()

    def twin(self, *, without: str | None = None) -> KeyedGraphs:
        """Make an empty cache like this one that asks no archive; its key may leave one value out."""
        return KeyedGraphs(
            self.name,
            stream=self.stream,
            shape=[name for name in self.shape if name != without],
            moving=[name for name in self.moving if name != without],
            most=self.most,
            dedicated=self.dedicated,
            floor=self.floor,
            hook=AbsentHook("a twin has no archive"),
            driver=self.driver,
        )

    def _split(self, key: Key) -> tuple[Values, Values]:
        if len(key) != len(self.shape) + len(self.moving):
            raise ValueError(f"the key has {', '.join(key)}; it must have {', '.join(self.shape + self.moving)}")
        try:
            return tuple([key[name] for name in self.shape]), tuple([key[name] for name in self.moving])
        except KeyError as error:
            raise ValueError(f"the key lacks {error}") from None

    def _text(self, place: tuple[Values, Values]) -> str:
        """Name the graph of a place in the archive."""
        pairs = [*zip(self.shape, place[0], strict=True), *zip(self.moving, place[1], strict=False)]
        return " ".join(f"{name}={self._value(name, value)}" for name, value in pairs) or "all"

    def _value(self, name: str, value: object) -> str:
        if not isinstance(value, (bool, int, float, str)):
            raise ValueError(f"{name} is {value!r}; the values of a key are numbers, text or truth values")
        told = self._archived.portable(value)
        return f"{told['device']}+{told['offset']}" if isinstance(told, dict) else json.dumps(told)

    def _phase(self, place: tuple[Values, Values]) -> AbstractContextManager[None]:
        if self.hook.mode() is Mode.OFF:
            return nullcontext()
        return capi.scratch(self.hook, f"{self.name}/{self._text(place)} warm-up")

    def _run_eagerly(self, shape: Values, record: Record) -> None:
        record(self.stream)
        self.counts.eager += 1
        self._ran[shape] = None
        self._ran.move_to_end(shape)
        if len(self._ran) > 2 * self.most:
            self._ran.popitem(last=False)

    def _restored(self, place: tuple[Values, Values], moving: Values) -> _Held | None:
        found = self._archived.find(self._text(place), self.moving)
        if found is None or (self.dedicated and found[1] != moving):
            return None
        held = _Held(found[0], found[1], self._text(place), owned=False, kept=capi.stores(self.hook))
        self._hold(place, held)
        self.counts.restored += 1
        return held

    def _renew(self, place: tuple[Values, Values], moving: Values, record: Record) -> Done | None:
        """Record the pass, and hold an exec of it: the one there is, updated, or another. None: it must run eagerly."""
        if self.floor and self._short_of_memory():
            return None
        try:
            graph = self.driver.record(self.stream, record)
        except Exception as error:
            self.driver.clear_error()
            self._unfit[place[0]] = str(error) or type(error).__name__
            log.warning("passes of %s %s run eagerly: %s", self.name, self._text(place), self._unfit[place[0]])
            return None
        try:
            held = self._held.get(place)
            if held is not None and not held.kept and self._updated(held, graph):
                held.moving = moving
                self._archived.changed(held.key, moving)
                self._held.move_to_end(place)
                self.counts.updated += 1
                return Done.UPDATED
            made = self._instantiate(place, moving, graph)
            if made is None:
                return None
            self._hold(place, made)
            self.counts.captured += 1
            return Done.CAPTURED
        finally:
            self.driver.drop_graph(graph)

    def _updated(self, held: _Held, graph: int) -> bool:
        try:
            reason = self.driver.update(held.executable, graph)
        except CallError as error:
            reason = str(error)
        if reason is None:
            return True
        # Whether a refused exec is whole is the driver's secret.
        held.moving = UNKNOWN
        self._archived.changed(held.key, UNKNOWN)
        self.driver.clear_error()
        self.counts.refused += 1
        log.debug("graph %s of %s is made anew: %s", held.key, self.name, reason)
        return False

    def _instantiate(self, place: tuple[Values, Values], moving: Values, graph: int) -> _Held | None:
        key = self._text(place)
        for again in (True, False):
            try:
                with self._archived.recorded(key, dict(zip(self.moving, moving, strict=True))) as kept:
                    return _Held(self.driver.instantiate(graph), moving, key, kept=kept)
            except CallError as error:
                self.driver.clear_error()
                if error.result != OUT_OF_MEMORY:
                    raise
                if again:
                    self._empty_itself()
        return None

    def _hold(self, place: tuple[Values, Values], held: _Held) -> None:
        if place in self._held:
            self._destroy(self._held.pop(place))
        ran = place[0] in self._ran
        same = [other for other in self._held if other[0] == place[0]]
        if self.dedicated and len(same) >= self.dedicated:
            self._drop(same[0])
            self.counts.dropped += 1
        while len(self._held) >= self.most:
            self._drop(next(iter(self._held)))
            self.counts.dropped += 1
        self._held[place] = held
        if ran:
            self._ran[place[0]] = None  # the last of its shape may have made room

    def _drop(self, place: tuple[Values, Values]) -> None:
        self._destroy(self._held.pop(place))
        if not any(other[0] == place[0] for other in self._held):
            self._ran.pop(place[0], None)

    def _destroy(self, held: _Held) -> None:
        if held.owned:
            self.driver.drop_exec(held.executable)

    def _empty_itself(self) -> None:
        if self._held:
            self.empty()
            self.counts.emptied += 1

    def _short_of_memory(self) -> bool:
        """Empty the cache if memory is short, and tell whether it is still."""
        if self.driver.free_memory() >= self.floor:
            return False
        self._empty_itself()
        return self.driver.free_memory() < self.floor
