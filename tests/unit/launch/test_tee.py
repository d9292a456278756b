from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from foundry.launch.tee import LONGEST_LINE, Tee


def through(parts: list[bytes]) -> tuple[bytes, list[str]]:
    """What came out for these writes, and which lines were looked at."""
    read, write = os.pipe()
    lines: list[str] = []
    tee = Tee(write, lines.append)
    out = b""
    for part in parts:
        os.write(tee.for_child, part)
        assert tee.pump()
        out += os.read(read, 1 << 16) if part else b""
    tee.started()
    assert not tee.pump()
    os.close(write)
    out += os.read(read, 1 << 16)
    os.close(read)
    return out, lines


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_bytes_are_unchanged(parts: list[bytes]) -> None:
    assert through(parts)[0] == b"".join(parts)


def test_lines_are_whole_and_without_colours() -> None:
    _, lines = through([b"one\ntw", b"o\r\n\x1b[1;32mthree\x1b[0m\n", b"\xff\nrest"])
    assert lines == ["one", "two", "three", "�", "rest"]


def test_an_endless_line_does_not_grow() -> None:
    _, lines = through([b"x" * 60_000, b"y" * 60_000, b"\nz\n"])
    assert lines[1:] == ["z"]
    assert len(lines[0]) <= LONGEST_LINE


def test_a_reader_that_left_ends_the_stream() -> None:
    read, write = os.pipe()
    tee = Tee(write, lambda _: None)
    os.close(read)
    os.write(tee.for_child, b"x")
    assert not tee.pump()
    assert not tee.open
    tee.started()
    os.close(write)
