"""Blobs that are packed before the rest of their capture is there."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.spool_writer import SpoolWriter
from helpers.varied import varied_capture

from foundry import archive, pack
from foundry.archive import layout, writer
from foundry.archive.advance import Ahead
from foundry.archive.writer import ArchiveStream
from foundry.model import Capture

CUT = 1000


@pytest.fixture(autouse=True)
def small_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "BLOB_CUT", CUT)


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all contents that were packed as blobs."""
    sizes: list[int] = []
    compress = writer.compress_blobs

    def counted(raw: bytes | memoryview) -> bytes:
        sizes.append(len(raw))
        return compress(raw)

    monkeypatch.setattr("foundry.archive.writer.compress_blobs", counted)
    monkeypatch.setattr("foundry.archive.advance.compress_blobs", counted)
    return sizes


def with_blobs(*sizes: int) -> Capture:
    rng = random.Random(1)
    return replace(varied_capture(rng), processes=(), files=(), outside={}, blobs=tuple(map(rng.randbytes, sizes)))


def test_what_was_packed_ahead_is_taken(packed: list[int]) -> None:
    capture = with_blobs(300, 2500, 900)
    plain = b"".join(ArchiveStream(capture))
    assert sorted(packed) == [700, CUT, CUT, CUT]
    packed.clear()
    with Ahead() as ahead:
        ahead.begin(capture.blobs[:1])
        ahead.begin(capture.blobs[:2])
        ahead.begin(capture.blobs)
        assert b"".join(ArchiveStream(capture, ahead)) == plain
    assert sorted(packed) == [700, CUT, CUT, CUT]


def test_what_is_another_section_in_the_end_is_not_taken(packed: list[int]) -> None:
    capture = with_blobs(1500, 1500, 20)
    plain = b"".join(ArchiveStream(capture))
    for others in ((capture.blobs[1], capture.blobs[0]), (*capture.blobs[:2], bytes(CUT)), (bytes(5 * CUT),)):
        with Ahead() as ahead:
            ahead.begin(others)
            assert b"".join(ArchiveStream(capture, ahead)) == plain
    packed.clear()
    with Ahead() as ahead:
        ahead.begin((capture.blobs[0], bytes(1500)))
        assert b"".join(ArchiveStream(capture, ahead)) == plain
    assert sorted(packed) == [20, CUT, CUT, CUT, CUT, CUT]


def test_a_capture_that_is_given_up_leaves_nothing_running() -> None:
    with pytest.raises(KeyError), Ahead() as ahead:
        ahead.begin([bytes(50 * CUT)])
        raise KeyError


def test_the_packer_tells_the_blobs_as_soon_as_it_has_them(tmp_path: Path) -> None:
    rng = random.Random(2)
    for role in ("rank-0", "rank-1"):
        spool = SpoolWriter(tmp_path / "spool", role)
        spool.driver()
        spool.device()
        for number in range(3):
            spool.image(0x10 + number, rng.randbytes(700), rng.randbytes(32))
        spool.end()
        spool.write()
    told: list[int] = []
    with archive.ahead() as ahead:

        def begin(blobs: Sequence[bytes]) -> None:
            told.append(len(blobs))
            ahead.begin(blobs)

        capture, _ = pack.pack(tmp_path / "spool", all_kernels=True, blobs=begin)
        identity = archive.write(capture, tmp_path / "ahead.fdry", ahead=ahead)
    assert told == [3, 6]
    assert identity == archive.write(capture, tmp_path / "plain.fdry")
    assert (tmp_path / "ahead.fdry").read_bytes() == (tmp_path / "plain.fdry").read_bytes()
