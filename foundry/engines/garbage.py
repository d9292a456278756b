"""Python's garbage collector while a restore puts in place what a start would have made.

Much of what an engine loads lives as long as the process, and each look through all of it takes long. Nothing is kept
from being collected: that is done later, by whoever would do it anyway.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Look for none during the block, unless somebody asks for it."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def set_aside() -> None:
    """Have later collections look at what is made from here on only, where all was just collected.

    What becomes garbage of what is there now is freed only where it has no cycles, so this is for engines that do the
    same at the end of their start.
    """
    gc.freeze()


@contextmanager
def spared() -> Iterator[None]:
    """Look for none during the block, not even where an engine asks for it, as around its capture loop."""
    plain = gc.collect

    def collect(generation: int = 2) -> int:
        return 0

    gc.collect = collect
    try:
        with paused():
            yield
    finally:
        gc.collect = plain
