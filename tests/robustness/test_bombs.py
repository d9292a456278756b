"""Small archives that ask for much: each is refused with a code, or read, in a process whose memory is bounded."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from helpers.archive_builder import Piece, build, changed
from robustness import mutants

import foundry
from foundry.archive.layout import Kind

RICH = next(archive for archive in mutants.vectors() if len(archive.pieces) > 8)
MEGABYTE = 1 << 20
SOURCE = """
import json, sys, resource
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from robustness import run_mutants, tools, verdicts
run_mutants.SECONDS_EACH, run_mutants.MEMORY = 120, 512 << 20
run_mutants.limit_time()
run_mutants.limit_memory()
found = run_mutants.tried(8, Path(sys.argv[1]).read_bytes(), Path(sys.argv[1]))
json.dump([*found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss], sys.stdout)
"""


def tried(data: bytes, folder: Path) -> tuple[str, str]:
    path = folder / "bomb.fdry"
    path.write_bytes(data)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(foundry.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, "-c", SOURCE, str(path), str(Path(__file__).parents[1])],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    verdict, wrong, _ = json.loads(ended.stdout)
    return verdict, wrong


def frame(content_size: int, blocks: int) -> bytes:
    """A frame that says it holds that much, and holds so many blocks of 128 KiB of one byte."""
    block = struct.pack("<I", 1 << 17 << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", 1 << 17 << 3 | 1 << 1 | 1)[:3] + b"\0"
    return struct.pack("<IBBQ", 0xFD2FB528, 0xC0, 0x50, content_size) + block * (blocks - 1) + last


def text_of(value: bytes) -> bytes:
    """The head's text with another key before all others."""
    head = next(piece.data for piece in RICH.pieces if piece.kind == Kind.CAPTURE)
    return b'{"a":' + value + b"," + head[1:]


def pieces(kind: Kind, **fields: object) -> bytes:
    return build(changed(RICH.pieces, kind, **fields))


GROUP_OF_EMPTY_NODES = struct.pack("<3I", 1, 1 << 12, 0) + b"".join(
    struct.pack("<I", value) * (1 << 12) for value in (5, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
)


def many_bodies(count: int) -> bytes:
    parts = []
    for piece in RICH.pieces:
        if piece.kind == Kind.GROUPS:
            parts.append(Piece(piece.kind, piece.process, GROUP_OF_EMPTY_NODES))
        elif piece.kind == Kind.BODIES:
            parts.append(Piece(piece.kind, piece.process, struct.pack("<6I", count, 0, 0, 0, 0, 0) + bytes(4 * count)))
        elif piece.kind == Kind.PARAMETERS:
            parts.append(replace(piece, data=b"", stored=None))
        else:
            parts.append(piece)
    return build(parts)


BOMBS = {
    "a frame of 1 GiB that holds little": (
        lambda: pieces(Kind.PARAMETERS, stored=frame(1 << 30, 1), raw=1 << 30),
        {"archive-section-damaged"},
    ),
    "a frame of 1 GiB that holds it": (
        lambda: pieces(Kind.PARAMETERS, stored=frame(1 << 30, 1 << 13), raw=1 << 30),
        {"archive-section-damaged"},
    ),
    "a frame that holds more than it says": (
        lambda: pieces(Kind.PARAMETERS, stored=frame(16, 1 << 13), raw=16),
        {"archive-section-damaged"},
    ),
    "a text of lists": (lambda: pieces(Kind.CAPTURE, data=text_of(b"[" + b"[]," * MEGABYTE + b"[]]")), {"accepted"}),
    "a text of more lists than there is memory for": (
        lambda: pieces(Kind.CAPTURE, data=text_of(b"[" + b"[]," * (10 * MEGABYTE) + b"[]]")),
        {"archive-content"},
    ),
    "a text that nests": (
        lambda: pieces(Kind.CAPTURE, data=text_of(b"[" * MEGABYTE + b"]" * MEGABYTE)),
        {"archive-content"},
    ),
    "a number of a million digits": (lambda: pieces(Kind.CAPTURE, data=text_of(b"9" * MEGABYTE)), {"archive-content"}),
    "more nodes than there may be": (lambda: many_bodies(1 << 13), {"archive-content"}),
    "as many nodes as there may be": (lambda: many_bodies(1 << 12), {"archive-content"}),
    "more bodies than there may be": (lambda: many_bodies((1 << 20) + 1), {"archive-content"}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_or_read_in_bounded_memory(name: str, tmp_path: Path) -> None:
    make, expected = BOMBS[name]
    data = make()
    assert len(data) < MEGABYTE // 8
    verdict, wrong = tried(data, tmp_path)
    assert wrong == ""
    assert verdict in expected


def test_the_frames_are_what_they_say(tmp_path: Path) -> None:
    assert zstandard.ZstdDecompressor().decompress(frame(1 << 18, 2)) == bytes(1 << 18)
