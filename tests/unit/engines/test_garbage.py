"""Python's garbage collector rests during a block, and is as it was afterwards."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from foundry.engines import garbage


class Cycle:
    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()


def dropped() -> weakref.ref[Cycle]:
    return weakref.ref(Cycle())


def test_who_asks_meanwhile_is_answered_and_it_is_collected_afterwards() -> None:
    plain = gc.collect
    with garbage.spared():
        one = dropped()
        assert gc.collect() == gc.collect(1) == gc.collect(generation=0) == 0
        assert one() is not None
    assert gc.collect is plain
    gc.collect()
    assert one() is None


def test_who_asks_while_it_is_paused_is_obeyed() -> None:
    with garbage.paused():
        one = dropped()
        gc.collect()
        assert one() is None


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    with garbage.spared():
        pass
    assert not gc.isenabled()


@pytest.mark.parametrize("block", [garbage.paused, garbage.spared])
def test_it_goes_on_even_after_an_error(block: object) -> None:
    assert gc.isenabled()
    with pytest.raises(RuntimeError), block():  # type: ignore[operator]
        assert not gc.isenabled()
        raise RuntimeError
    assert gc.isenabled()
    assert gc.collect.__name__ == "collect" and gc.collect.__module__ == "gc"
