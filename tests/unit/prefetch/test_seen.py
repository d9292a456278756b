"""What /proc tells of files, read from processes of the test's own."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry.prefetch import seen
from foundry.prefetch.seen import BLOCK

READS = """
import mmap, sys
path = sys.argv[1]
held, other = open(path, "rb"), open(path + ".new", "ab")
held.seek(100)
part = mmap.mmap(held.fileno(), 0, access=mmap.ACCESS_READ)
part[5 * 65536], part[9 * 65536 + 4096]
print(held.fileno(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "data with a space").write_bytes(os.urandom(200 * BLOCK))
    process = subprocess.Popen(
        [sys.executable, "-c", READS, str(tmp_path / "data with a space")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    process.stdout.readline()
    yield process
    process.communicate()


def test_only_what_was_touched_of_a_mapped_file(reader: subprocess.Popen[str], tmp_path: Path) -> None:
    (part,) = [part for part in seen.mapped(reader.pid) if part.path == str(tmp_path / "data with a space")]
    blocks = set(part.blocks.tolist())
    assert {5, 9} <= blocks <= set(range(64))  # of large folios the kernel maps all
    assert not part.code


def test_libraries_are_code(reader: subprocess.Popen[str]) -> None:
    found = {part.path for part in seen.mapped(reader.pid) if part.code}
    assert [path for path in found if "/libc.so" in path or "/libc-" in path]


def test_files_that_are_open_to_be_read(reader: subprocess.Popen[str], tmp_path: Path) -> None:
    found = [one for one in seen.held(reader.pid) if one.path.startswith(str(tmp_path))]
    assert {one.path for one in found} == {str(tmp_path / "data with a space")}
    assert 100 in {one.at for one in found}


def test_how_much_it_read(reader: subprocess.Popen[str]) -> None:
    assert seen.bytes_read(reader.pid) > 0


def test_a_file_that_is_gone_is_none(tmp_path: Path) -> None:
    path = tmp_path / "gone"
    path.write_bytes(bytes(BLOCK))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        path.unlink()
        assert data[0] == 0
        assert [part for part in seen.mapped(os.getpid()) if part.path.startswith(str(path))] == []


def test_a_process_that_is_gone_has_none(reader: subprocess.Popen[str]) -> None:
    reader.communicate()
    assert (list(seen.mapped(reader.pid)), list(seen.held(reader.pid)), seen.bytes_read(reader.pid)) == ([], [], 0)


def test_mappings_are_read_in_stretches(
    reader: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocks() -> list[list[int]]:
        found = seen.mapped(reader.pid)
        return [part.blocks.tolist() for part in found if part.path == str(tmp_path / "data with a space")]

    (whole,) = blocks()
    monkeypatch.setattr(seen, "_STRETCH", 2 * BLOCK)
    assert len(blocks()) == 100
    assert [block for part in blocks() for block in part] == whole


@pytest.mark.parametrize("path", ["/proc/self/maps", "/dev/nvidia0", "/sys/x", "socket:[1]", "/a\nb", "relative"])
def test_what_is_no_file_on_a_disk(path: str) -> None:
    assert not seen.is_ordinary(path)


def test_what_is_in_the_page_cache(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(64 * BLOCK))
    assert seen.is_cached(str(path), 64 * BLOCK)
    assert not seen.is_cached(str(path), 64 * BLOCK * 10)
    assert not seen.is_cached(str(tmp_path / "none"), 10)


def test_what_is_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(64 * BLOCK))
    real = os.preadv

    def of_a_disk(handle: int, into: list[bytearray], offset: int, flags: int) -> int:
        if offset > 40 * BLOCK:
            raise BlockingIOError
        return real(handle, into, offset, flags)

    monkeypatch.setattr(os, "preadv", of_a_disk)
    assert not seen.is_cached(str(path), 64 * BLOCK)
