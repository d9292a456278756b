"""A section that is unpacked a stretch at a time."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from helpers.archive_builder import Piece, build

from foundry.archive import streams
from foundry.archive.container import Container
from foundry.archive.layout import WHOLE, Kind
from foundry.archive.streams import SHORT, Stream
from foundry.errors import ArchiveError
from foundry.findings import ARCHIVE_SECTION_DAMAGED

SKIPPABLE = bytes.fromhex("502a4d1800000000")


def content_of(size: int) -> bytes:
    """Bytes that compress, but not to nothing, with a stretch of equal ones: a block that is repeated."""
    rng = random.Random(size)
    half = bytes(rng.choices(range(6), k=size // 2))
    return half + bytes(size - len(half))


def opened(folder: Path, data: bytes, stored: bytes | None = None, digest: bytes | None = None) -> Container:
    path = folder / "x.fdry"
    piece = Piece(Kind.CAPTURE, WHOLE, data, stored=stored)
    path.write_bytes(build([piece if digest is None else replace(piece, digest=digest)]))
    return Container(path)


@pytest.mark.parametrize("size", [0, 1, SHORT - 1, SHORT, 3 * SHORT + 5])
@pytest.mark.parametrize("alone", [True, False])
def test_it_gives_the_content_in_stretches(tmp_path: Path, size: int, alone: bool) -> None:
    data, rng = content_of(size), random.Random(1)
    with opened(tmp_path, data) as container:
        stream = Stream(container, container.sections[0], alone=alone)
        assert stream.size == size
        found = b""
        while len(found) < size:
            found += bytes(stream.take(rng.randrange(min(size - len(found), SHORT) + 1)))
        assert bytes(stream.take(0)) == b""
        stream.finish()
    assert found == data


def test_what_nobody_asked_for_is_checked_too(tmp_path: Path) -> None:
    data = content_of(5 * SHORT)
    with opened(tmp_path, data, digest=bytes(32)) as container:
        stream = Stream(container, container.sections[0])
        assert bytes(stream.take(100)) == data[:100]
        with pytest.raises(ArchiveError, match="does not match its digest") as caught:
            stream.finish()
    assert caught.value.code == ARCHIVE_SECTION_DAMAGED


def test_no_more_is_given_than_there_is(tmp_path: Path) -> None:
    with opened(tmp_path, bytes(10)) as container:
        stream = Stream(container, container.sections[0])
        stream.take(4)
        with pytest.raises(ValueError, match="more than is left"):
            stream.take(7)
        stream.finish()


@pytest.mark.parametrize("size", [0, 1, 100, 3 * SHORT])
@pytest.mark.parametrize("checked", [True, False])
def test_frames_of_every_making_are_taken(tmp_path: Path, size: int, checked: bool) -> None:
    data = content_of(size)
    for level in (-5, 1, 19):
        compressor = zstandard.ZstdCompressor(level=level, write_checksum=checked)
        stream = compressor.compressobj(size=size)
        with opened(tmp_path, data, stream.compress(data) + stream.flush()) as container:
            Stream(container, container.sections[0]).finish()
            container.check(container.sections[0])
            assert container.raw(container.sections[0]) == data


@pytest.mark.parametrize("size", [0, 1, 100, SHORT, 3 * SHORT])
def test_a_frame_that_is_not_all_there_is_damaged(tmp_path: Path, size: int) -> None:
    data = content_of(size)
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    broken = [frame[:-1], frame[:-4], frame[:-5], frame + b"\0", frame + SKIPPABLE, frame + frame]
    broken += [bytes((*frame[:-1], frame[-1] ^ 1))]
    for stored in broken:
        with opened(tmp_path, data, stored) as container:
            section = container.sections[0]
            for reading in (Stream(container, section).finish, lambda: container.check(section)):  # noqa: B023
                with pytest.raises(ArchiveError, match="cannot be unpacked") as caught:
                    reading()
                assert caught.value.code == ARCHIVE_SECTION_DAMAGED
            with pytest.raises(ArchiveError, match="cannot be unpacked"):
                container.raw(section)


def test_more_than_is_declared_is_not_unpacked(tmp_path: Path) -> None:
    """A header that declares 8 bytes, and a block behind it that repeats one byte 128 KiB times."""
    block = bytes.fromhex("28b52ffd") + bytes((0xC0, 0x78)) + (8).to_bytes(8, "little") + bytes.fromhex("03001000")
    with opened(tmp_path, bytes(8), block) as container:
        stream = Stream(container, container.sections[0])
        with pytest.raises(ArchiveError, match="cannot be unpacked"):
            stream.finish()


def test_another_core_makes_the_digest_of_long_sections_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size, more in ((SHORT - 1, 0), (SHORT, 1)):
        with opened(tmp_path, content_of(size)) as container:
            before = threading.active_count()
            stream = Stream(container, container.sections[0])
            stream.take(size)
            assert threading.active_count() == before + more
            stream.finish()
            assert threading.active_count() == before


def test_a_stretch_is_not_overwritten_before_it_is_in_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow:
        """Takes the bytes only after the next stretches were asked for."""

        def __init__(self) -> None:
            self.found = b""

        def update(self, data: memoryview) -> None:
            threading.Event().wait(0.02)
            self.found += bytes(data)

    data = content_of(20 * SHORT)
    with opened(tmp_path, data) as container:
        slow = Slow()
        monkeypatch.setattr(streams.hashlib, "sha256", lambda: slow)
        stream = Stream(container, container.sections[0])
        monkeypatch.undo()
        for _ in range(20):
            stream.take(SHORT)
        with pytest.raises(AttributeError):
            stream.finish()
    assert slow.found == data
