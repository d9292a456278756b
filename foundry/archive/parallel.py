"""Work on several cores with few pieces in flight, so that memory depends on the largest piece, not on their number."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 16


def threads() -> int:
    """Tell how many pieces of work may run at a time."""
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)))


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
