"""A file that is written on another core, and has its name only when it is whole."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from foundry.errors import DiskFullError, FoundryError
from foundry.image.output import Output

LARGE = 3 << 20


def test_parts_stand_where_they_were_put(tmp_path: Path) -> None:
    path = tmp_path / "x"
    many = [bytes((number & 255,)) * (number % 3) for number in range(2000)]
    large = np.arange(LARGE // 8, dtype="<u8")
    with Output(path, 100 + LARGE + 5000) as output:
        output.write(100, large)
        output.write(100 + LARGE + 7, *many)
        output.write(3, b"abc", b"", memoryview(b"d"))
        assert not path.exists()
        output.finish()
    joined = b"".join(many)
    expected = bytearray(100 + LARGE + 5000)
    expected[3:7] = b"abcd"
    expected[100 : 100 + LARGE] = large.tobytes()
    expected[100 + LARGE + 7 : 100 + LARGE + 7 + len(joined)] = joined
    assert path.read_bytes() == bytes(expected)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_taken_bit_by_bit_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev

    def little(file: int, parts: Sequence[memoryview], at: int) -> int:
        return real(file, [b"".join(parts)[:7]], at)

    monkeypatch.setattr(os, "pwritev", little)
    parts = [bytes(range(size)) for size in (5, 1, 20, 7, 7, 3)]
    with Output(tmp_path / "x", 43) as output:
        output.write(0, *parts)
        output.finish()
    assert (tmp_path / "x").read_bytes() == b"".join(parts)


@pytest.mark.parametrize("size", [100, LARGE])
@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (errno.ENOSPC, DiskFullError, "the file system is full; 12345 bytes are needed"),
        (errno.EDQUOT, DiskFullError, "the file system is full; 12345 bytes are needed"),
        (errno.EIO, FoundryError, "Input/output error"),
    ],
)
def test_what_cannot_be_written_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, number: int, kind: type[FoundryError], text: str
) -> None:
    def fails(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    def write() -> None:
        with Output(tmp_path / "x", 12345) as output:
            output.write(0, bytes(size))
            output.finish()

    monkeypatch.setattr(os, "pwritev", fails)
    with pytest.raises(kind, match=text) as caught:
        write()
    assert type(caught.value) is kind
    assert list(tmp_path.iterdir()) == []


def test_without_an_end_there_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with Output(tmp_path / "x", 10) as output:
        output.write(0, bytes(10))
    with pytest.raises(FoundryError, match="No such file"):
        Output(tmp_path / "missing" / "x", 10)
    assert (tmp_path / "x").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]
