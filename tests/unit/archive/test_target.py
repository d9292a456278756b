"""An archive appears as a whole or not at all, and what stood there stands until then."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from foundry.archive import target
from foundry.errors import ArchiveExistsError, DiskFullError, FoundryError

PARTS = [b"first part, ", b"second part, ", b"third part"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_parts_follow_one_another(tmp_path: Path) -> None:
    target.put(tmp_path / "x", PARTS, force=False)
    assert (tmp_path / "x").read_bytes() == b"".join(PARTS)
    assert names(tmp_path) == ["x"]


def test_an_existing_file_is_not_replaced_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(ArchiveExistsError, match="exists already"):
        target.put(path, PARTS, force=False)
    assert path.read_bytes() == b"old"
    target.put(path, PARTS, force=True)
    assert path.read_bytes() == b"".join(PARTS) and names(tmp_path) == ["x"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x"

    def parts() -> Iterator[bytes]:
        yield b"mine"
        path.write_bytes(b"theirs")

    with pytest.raises(ArchiveExistsError, match="meanwhile"):
        target.put(path, parts(), force=False)
    assert path.read_bytes() == b"theirs" and names(tmp_path) == ["x"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("at", range(5))
def test_a_full_disk_tells_the_bytes_and_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, code: int
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    calls = iter(range(100))
    real = os.write

    def full(handle: int, data: bytes) -> int:
        if next(calls) == at:
            raise OSError(code, os.strerror(code))
        return real(handle, data[:11])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskFullError, match=f"{len(b''.join(PARTS))} bytes are needed"):
        target.put(path, iter(PARTS), force=True)
    assert path.read_bytes() == b"old" and names(tmp_path) == ["x"]


def test_a_disk_that_fills_up_at_the_sync_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFullError):
        target.put(path, PARTS, force=True)
    assert path.read_bytes() == b"old" and names(tmp_path) == ["x"]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
    target.put(tmp_path / "x", PARTS, force=False)
    assert (tmp_path / "x").read_bytes() == b"".join(PARTS)


def test_a_producer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"begun"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        target.put(tmp_path / "x", parts(), force=False)
    assert names(tmp_path) == []


def test_odd_targets_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-device").symlink_to("/dev/null")
    for name in ("folder", "pipe", "to-device"):
        with pytest.raises(FoundryError, match="not a regular file"):
            target.put(tmp_path / name, PARTS, force=True)
    with pytest.raises(FoundryError, match="No such file or directory"):
        target.put(tmp_path / "missing" / "x", PARTS, force=True)
    with pytest.raises(FoundryError, match="cannot write"):
        target.put(tmp_path / "with\0zero", PARTS, force=True)
    assert names(tmp_path) == ["folder", "pipe", "to-device"]


def test_a_link_keeps_pointing_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    target.put(tmp_path / "link", PARTS, force=True)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"".join(PARTS)


def test_file_systems_without_links_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: Path, name: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    target.put(tmp_path / "x", PARTS, force=False)
    assert names(tmp_path) == ["x"]


KILLED = """
import os, pathlib, signal, sys
from foundry.archive import target
path, at, calls = pathlib.Path(sys.argv[1]), int(sys.argv[2]), iter(range(1000))
def counted(name):
    real = getattr(os, name)
    def call(*arguments, **options):
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    setattr(os, name, call)
for name in ("write", "fsync", "close", "replace", "rename", "link", "unlink", "open"):
    counted(name)
target.put(path, [b"new " * 10] * 3, force=True)
"""


def test_a_kill_at_every_call_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    seen = set()
    for at in range(40):
        path.write_bytes(b"old")
        ended = subprocess.run([sys.executable, "-c", KILLED, str(path), str(at)], check=False)
        seen.add(path.read_bytes())
        assert path.read_bytes() in (b"old", b"new " * 30)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL
    assert seen == {b"old", b"new " * 30} and ended.returncode == 0


def test_what_a_killed_writer_left_goes_with_the_next_one(tmp_path: Path) -> None:
    left, other = tmp_path / ".foundry-abc.partial", tmp_path / ".foundry-abc.kept"
    for path in (left, other):
        path.write_bytes(b"unfinished")
    target.put(tmp_path / "x", PARTS, force=False)
    assert names(tmp_path) == [other.name, "x"]


def test_the_unfinished_file_of_a_writer_at_work_stays(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"begun, "
        target.put(tmp_path / "second", PARTS, force=False)
        assert sum(name.endswith(".partial") for name in names(tmp_path)) == 1
        yield b"ended"

    target.put(tmp_path / "first", parts(), force=False)
    assert (tmp_path / "first").read_bytes() == b"begun, ended"
    assert names(tmp_path) == ["first", "second"]


def test_a_file_that_is_taken_for_abandoned_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, taken = fcntl.flock, []

    def late(handle: int, how: int) -> None:
        if not taken and how == fcntl.LOCK_EX:
            taken.append(True)
            target._remove_abandoned(tmp_path)
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    target.put(tmp_path / "x", PARTS, force=False)
    assert taken and (tmp_path / "x").read_bytes() == b"".join(PARTS) and names(tmp_path) == ["x"]


def test_file_systems_without_locks_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / ".foundry-abc.partial").write_bytes(b"perhaps another's")
    target.put(tmp_path / "x", PARTS, force=False)
    assert names(tmp_path) == [".foundry-abc.partial", "x"]


@pytest.mark.parametrize(
    ("code", "text", "hint"),
    [
        (errno.ENOSPC, "the file system is full", "make room"),
        (errno.EDQUOT, "the disk quota is used up", "make room"),
        (errno.EFBIG, "a file may not be that large here", "ulimit -f"),
    ],
)
def test_no_room_even_for_a_name_tells_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, text: str, hint: str
) -> None:
    def full(**_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(DiskFullError, match=f"{text}; {len(b''.join(PARTS))} bytes are needed") as caught:
        target.put(tmp_path / "x", iter(PARTS), force=False)
    assert hint in (caught.value.hint or "")
