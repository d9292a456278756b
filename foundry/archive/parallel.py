"""Work on several cores with few pieces in flight, so that memory depends on the largest piece, not on their number."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 16


def threads() -> int:
    """Tell how many pieces of work may run at a time."""
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)))


class Handed(Generic[Result]):
    """What one piece of work hands on to another, once."""

    def __init__(self) -> None:
        # Not before: a restore reads one section, and waits for what is imported.
        from threading import Event

        self._there = Event()
        self._values: list[Result] = []

    def hand(self, value: Result) -> None:
        """Hand the value on; only the first counts."""
        self._values.append(value)
        self._there.set()

    def taken(self) -> Result:
        """Wait for the value."""
        self._there.wait()
        return self._values[0]


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Give the result of each piece of work, in order. They start in order, at most one for each core at a time.

    As many again may be done or wait while an earlier one still runs, so that no core is idle behind a large piece.
    """
    most = threads()
    if most == 1:
        yield from map(work, items)
        return
    # Not before: a restore reads one section, and waits for what is imported.
    from concurrent.futures import ThreadPoolExecutor

    running: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(most) as pool:
        try:
            for item in items:
                if len(running) == 2 * most:
                    yield running.popleft().result()
                running.append(pool.submit(work, item))
            while running:
                yield running.popleft().result()
        finally:
            while running:
                future = running.popleft()
                if not future.cancel():
                    with suppress(Exception):
                        future.result()


def begun(work: Callable[[Item], Result], items: Sequence[Item]) -> Callable[[], list[Result]]:
    """Begin all pieces of work, at most one for each core at a time, beside the caller.

    What it gives waits for the results. It must be called, else nobody hears of what goes wrong.
    """
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(min(threads(), len(items)))
    futures = [pool.submit(work, item) for item in items]

    def wait() -> list[Result]:
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)

    return wait


def beside(work: Callable[[], Result], *, small: bool = False) -> Callable[[], Result]:
    """Begin a piece of work beside the caller, as `begun` does; a small one is done when it is waited for."""
    if small:
        return work
    wait = begun(lambda _: work(), [None])
    return lambda: wait()[0]
