"""The memory that parameter blocks are read into."""

from __future__ import annotations

import numpy as np

from foundry.spool.blocks import Blocks, joined


def test_parts_that_lie_in_order_are_not_copied() -> None:
    blocks = Blocks(100)
    dropped = blocks.add([b"dropped"])
    parts = [blocks.add([b"one", b"", b"two"]), blocks.add([]), blocks.add([b"three"])]
    whole = joined(parts)
    assert whole.tobytes() == b"onetwothree"
    assert np.shares_memory(whole, np.frombuffer(parts[0], np.uint8))
    assert not whole.flags.writeable
    assert bytes(dropped) == b"dropped"


def test_parts_in_another_order_are_copied() -> None:
    blocks, others = Blocks(100), Blocks(100)
    first, middle, last = (blocks.add([text]) for text in (b"first", b"middle", b"last"))
    assert joined([last, first]).tobytes() == b"lastfirst"
    assert joined([first, last]).tobytes() == b"firstlast"
    assert joined([middle, last, others.add([b"other"])]).tobytes() == b"middlelastother"
    assert not joined([first, last]).flags.writeable


def test_nothing_is_an_array_of_nothing() -> None:
    for parts in ([], [memoryview(b"")], [Blocks(0).add([])]):
        assert joined(parts).tobytes() == b""
