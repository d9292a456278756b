"""Reading ahead: in order, bounded, stopped, and never in anybody's way."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from foundry.model import StartFile
from foundry.prefetch import ahead
from foundry.prefetch.ahead import PIECE, Piece, pieces, read

PLENTY = 1 << 40


def files(folder: Path, count: int, size: int) -> list[StartFile]:
    found = []
    for number in range(count):
        path = folder / f"{number}"
        path.write_bytes(os.urandom(size))
        found.append(StartFile(str(path), size))
    return found


def test_pieces_are_those_parts_in_that_order() -> None:
    listed = [StartFile("/a", PIECE * 2 + 1), StartFile("/b", 1000, ((5, 10), (20, 1)))]
    assert list(pieces(listed, PLENTY)) == [
        Piece("/a", 0, PIECE),
        Piece("/a", PIECE, PIECE),
        Piece("/a", 2 * PIECE, 1),
        Piece("/b", 5, 10),
        Piece("/b", 20, 1),
    ]


def test_it_ends_where_memory_does() -> None:
    assert [piece.path for piece in pieces([StartFile("/a", 10), StartFile("/b", 10), StartFile("/c", 1)], 19)] == [
        "/a"
    ]
    assert list(pieces([StartFile("/a", 10)], 0)) == []


def test_all_of_it_is_asked_for(tmp_path: Path) -> None:
    listed = files(tmp_path, 20, 5000)
    assert read(listed, wanted=lambda: True, room=lambda: PLENTY) == 20 * 5000


def test_what_is_no_file_or_is_gone_or_is_shorter_now_is_passed_over(tmp_path: Path) -> None:
    (small,) = files(tmp_path, 1, 100)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    listed = [
        StartFile(str(tmp_path / "fifo"), 10),
        StartFile(str(tmp_path / "folder"), 10),
        StartFile(str(tmp_path / "gone"), 10),
        StartFile("/a\0b", 10),
        StartFile(small.path, 1000, ((0, 10), (200, 10), (90, 20))),
    ]
    assert read(listed, wanted=lambda: True, room=lambda: PLENTY) == 20


def test_it_stops_once_nobody_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Event()
    taken = []

    def slow(piece: Piece) -> int:
        taken.append(piece)
        gone.wait(5)
        return piece.length

    monkeypatch.setattr(ahead, "_fetch", slow)
    asked: list[int] = []

    def wanted() -> bool:
        asked.append(1)
        return len(asked) < 3

    read([StartFile(f"/{number}", 10) for number in range(100)], wanted=wanted, room=lambda: PLENTY)
    gone.set()
    assert len(taken) == ahead.WORKERS


def test_it_stops_when_memory_becomes_scarce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Event()
    monkeypatch.setattr(ahead, "_fetch", lambda piece: gone.wait(5) and 0)
    left = [PLENTY, PLENTY, 0]
    read([StartFile(f"/{number}", 10) for number in range(100)], wanted=lambda: True, room=lambda: left.pop(0))
    gone.set()
    assert left == []


def test_an_empty_list_is_done_at_once() -> None:
    assert read([], wanted=lambda: True, room=lambda: PLENTY) == 0
