"""Archives made from sound ones by a seeded change. What depends on the change is made to fit again, so that it is met
by the layer that it is aimed at and not by the digests above it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard
from helpers.archive_builder import Piece, build
from robustness import changes

from foundry.archive.layout import CRITICAL, ENTRY, FOOTER, HEADER, WHOLE, Kind

VECTORS = Path(__file__).resolve().parents[2] / "format_spec" / "vectors" / "v1" / "valid"
LARGEST = 1 << 20
"""Bytes of a section's content that a mutant may grow to, bombs excepted."""


@dataclass(frozen=True)
class Archive:
    """A sound archive, taken apart."""

    whole: bytes
    major: int
    minor: int
    pieces: tuple[Piece, ...]


def taken_apart(whole: bytes) -> Archive | None:
    """Take an archive apart, or None where that cannot be done. Checks only what it needs itself."""
    if len(whole) < HEADER.size + FOOTER.size:
        return None
    _, major, minor, *_ = HEADER.unpack_from(whole)
    table_at, count, *_ = FOOTER.unpack_from(whole, len(whole) - FOOTER.size)
    end = table_at + count * ENTRY.size
    if not HEADER.size <= table_at <= end <= len(whole):
        return None
    pieces = []
    for kind, flags, process, zero, offset, stored, raw, _ in ENTRY.iter_unpack(whole[table_at:end]):
        frame = whole[offset : offset + stored]
        try:
            if raw > LARGEST or zstandard.frame_content_size(frame) != raw:
                return None
            data = zstandard.ZstdDecompressor().decompress(frame, max_output_size=raw)
        except zstandard.ZstdError:
            return None
        pieces.append(Piece(kind, process, data, flags, frame, zero=zero))
    return Archive(whole, major, minor, tuple(pieces))


def vectors() -> list[Archive]:
    """The valid vectors, by name."""
    found = [taken_apart(path.read_bytes()) for path in sorted(VECTORS.glob("*.fdry"))]
    return [archive for archive in found if archive is not None]


def _built(archive: Archive, pieces: Sequence[Piece]) -> bytes:
    return build(pieces, major=archive.major, minor=archive.minor)


def of_bytes(rng: random.Random, archive: Archive, others: Sequence[Archive]) -> bytes:
    """Change the file's bytes and nothing else."""
    data = archive.whole
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = changes.of_bytes(rng, data, rng.choice(others).whole)
    return data


def of_container(rng: random.Random, archive: Archive, others: Sequence[Archive]) -> bytes:
    """Change a field of header, table or footer, or which sections there are; all checksums fit."""
    pieces = list(archive.pieces)
    options: dict[str, object] = {"major": archive.major, "minor": archive.minor}
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.randrange(12)
        at = rng.randrange(len(pieces)) if pieces else 0
        if kind < 5 and pieces:
            pieces[at] = _other_entry(rng, pieces[at])
        elif kind == 5 and pieces:
            del pieces[at]
        elif kind == 6 and pieces:
            pieces.insert(rng.randrange(len(pieces) + 1), pieces[at])
        elif kind == 7:
            rng.shuffle(pieces)
        elif kind == 8:
            foreign = rng.choice(others).pieces
            pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(foreign))
        elif kind == 9 and pieces:
            fitting = [piece for other in others for piece in other.pieces if piece.kind == pieces[at].kind]
            pieces[at] = rng.choice(fitting or pieces)
        elif kind == 10:
            new = Piece(rng.choice((0, 9, 10, 11, 99, 1 << 31)), WHOLE, rng.randbytes(9), rng.choice((0, CRITICAL)))
            pieces.insert(rng.randrange(len(pieces) + 1), new)
        else:
            name, values = rng.choice(_OPTIONS)
            options[name] = values(rng)
    return build(pieces, **options)  # type: ignore[arg-type]


_OPTIONS: tuple[tuple[str, Callable[[random.Random], object]], ...] = (
    ("major", lambda rng: rng.choice((0, 1, 2, 65535))),
    ("minor", lambda rng: rng.choice((0, 1, 65535))),
    ("count", lambda rng: changes.number(rng, 32)),
    ("table_at", lambda rng: changes.number(rng, 64)),
    ("gap", lambda rng: rng.randbytes(rng.choice((1, 8, 72)))),
    ("identity", lambda rng: rng.randbytes(32)),
    ("footer_version", lambda rng: (rng.randrange(3), rng.randrange(3))),
    ("header", lambda rng: HEADER.pack(b"\x93FDRY\r\n\x1a", 1, 0, *(rng.choice((0, 0, 1)) for _ in range(3)))),
)


def _other_entry(rng: random.Random, piece: Piece) -> Piece:
    field = rng.choice(("kind", "process", "flags", "raw", "digest", "offset", "stored_size", "zero"))
    if field == "digest":
        return replace(piece, digest=rng.randbytes(32))
    if field == "kind":
        return replace(piece, kind=rng.choice((0, *Kind, 10, 255, changes.number(rng, 32))))
    if field == "process":
        return replace(piece, process=rng.choice((0, 1, 2, 4095, 4096, WHOLE - 1, WHOLE)))
    if field == "flags":
        return replace(piece, flags=rng.choice((0, 1, 2, 3, 1 << 31)))
    if field == "zero":
        return replace(piece, zero=changes.number(rng, 32))
    near = {"raw": len(piece.data), "stored_size": len(piece.frame), "offset": HEADER.size}[field]
    value = rng.choice((near - 1, near + 1, changes.number(rng, 64), changes.number(rng, 30)))
    return replace(piece, **{field: max(0, value)})  # type: ignore[arg-type]


def of_frame(rng: random.Random, archive: Archive, others: Sequence[Archive]) -> bytes:
    """Store a section's content in another way, good or bad; the table says the truth, or repeats the frame's lie."""
    pieces = list(archive.pieces)
    if not pieces:
        return archive.whole
    at = rng.randrange(len(pieces))
    pieces[at] = changes.of_frame(rng, pieces[at])
    return _built(archive, pieces)


def of_content(rng: random.Random, archive: Archive, others: Sequence[Archive]) -> bytes:
    """Change what one or two sections say; frames, table, digests and the capture id fit."""
    pieces = list(archive.pieces)
    if not pieces:
        return archive.whole
    for _ in range(rng.choice((1, 1, 1, 2))):
        at = rng.randrange(len(pieces))
        data = changes.of_content(rng, pieces[at].kind, pieces[at].data)
        if len(data) <= LARGEST:
            pieces[at] = replace(pieces[at], data=data, stored=None)
            if pieces[at].kind == Kind.BLOBS and rng.random() < 0.7:
                pieces = changes.list_blobs_again(rng, pieces)
    return _built(archive, pieces)


def of_agreement(rng: random.Random, archive: Archive, others: Sequence[Archive]) -> bytes:
    """Change sections that must agree, all in the same way: more processes, more rows, other sizes."""
    return _built(archive, changes.of_agreement(rng, list(archive.pieces)))


STRATEGIES = (
    *[of_bytes] * 4,
    *[of_container] * 4,
    *[of_frame] * 2,
    *[of_content] * 9,
    of_agreement,
)


class Mutants:
    """Numbered mutants: each follows from the seed and its number alone."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._archives = vectors()

    def mutant(self, number: int) -> tuple[str, bytes]:
        """Give the name of the strategy and the bytes."""
        rng = random.Random(f"{self._seed} {number}")
        strategy = rng.choice(STRATEGIES)
        return strategy.__name__, strategy(rng, rng.choice(self._archives), self._archives)
