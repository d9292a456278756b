"""Seeded changes of bytes, numbers, zstd frames and the contents of sections."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import zstandard
from helpers.archive_builder import Piece

from foundry.archive.layout import TEXT_KINDS, Kind

EDGES = (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 127, 128, 255, 256, 4095, 4096, 65535, 65536)


def number(rng: random.Random, bits: int) -> int:
    """A number of up to that many bits, most often one at an edge."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(EDGES) & ((1 << bits) - 1)
    if kind == 1:
        return max(0, (1 << rng.randrange(bits + 1)) - rng.choice((0, 1, 2))) & ((1 << bits) - 1)
    if kind == 2:
        return (1 << bits) - 1 - rng.choice((0, 1, 2, 8))
    return rng.getrandbits(bits)


def _span(rng: random.Random, size: int) -> tuple[int, int]:
    start = rng.randrange(size + 1)
    return start, min(size, start + rng.choice((1, 2, 4, 8, 16, 72, 96, 400)))


def of_bytes(rng: random.Random, data: bytes, other: bytes = b"") -> bytes:
    """One change of the bytes: a bit, a byte, a word, a cut, a range taken out, put in, doubled, moved or swapped."""
    if not data:
        return rng.randbytes(rng.randrange(1, 40))
    kind = rng.randrange(10)
    changed = bytearray(data)
    at = rng.randrange(len(data))
    start, end = _span(rng, len(data))
    if kind == 0:
        changed[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    elif kind == 2:
        size = rng.choice((2, 4, 8))
        changed[at : at + size] = number(rng, 8 * size).to_bytes(size, rng.choice(("little", "big")))
        del changed[len(data) :]
    elif kind == 3:
        del changed[at:]
    elif kind == 4:
        del changed[start:end]
    elif kind == 5:
        changed[at:at] = rng.randbytes(rng.choice((1, 4, 8, 72)))
    elif kind == 6:
        changed[end:end] = data[start:end]
    elif kind == 7:
        second, last = _span(rng, len(data))
        if end <= second:
            changed = bytearray(data[:start] + data[second:last] + data[end:second] + data[start:end] + data[last:])
    elif kind == 8 and other:
        changed = bytearray(data[:at] + other[rng.randrange(len(other)) :])
    else:
        changed[start:end] = bytes((rng.choice((0, 0xFF)),)) * (end - start)
    return bytes(changed)


def _columns(rng: random.Random, data: bytes) -> bytes:
    """One change of words, of a count at the start, or of the number of rows."""
    changed, size = bytearray(data), rng.choice((4, 4, 8))
    places = len(data) // size
    if not places:
        return of_bytes(rng, data)
    kind = rng.randrange(8)
    at = rng.randrange(places) * size
    if kind < 2:
        changed[at : at + size] = number(rng, 8 * size).to_bytes(size, "little")
    elif kind == 2:
        old = int.from_bytes(data[at : at + size], "little")
        new = (old + rng.choice((-2, -1, 1, 2))) % (1 << 8 * size)
        changed[at : at + size] = new.to_bytes(size, "little")
    elif kind == 3:
        count = rng.randrange(min(6, len(data) // 4)) * 4
        old = int.from_bytes(data[count : count + 4], "little")
        new = rng.choice((old + 1, max(0, old - 1), number(rng, 32), old * 2)) & 0xFFFFFFFF
        changed[count : count + 4] = new.to_bytes(4, "little")
    elif kind == 4:
        other = rng.randrange(places) * size
        changed[at : at + size], changed[other : other + size] = data[other : other + size], data[at : at + size]
    elif kind == 5:
        del changed[at : at + size * rng.choice((1, 2, 7))]
    elif kind == 6:
        changed[at:at] = bytes(size * rng.choice((1, 2, 7, 25)))
    else:
        return of_bytes(rng, data)
    return bytes(changed)


ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 4095, 4096, 1 << 16, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 2,
    (1 << 32) - 1, 1 << 32, (1 << 53) - 1, 1 << 53, (1 << 64) - 1, 1 << 64, -(1 << 31), -(1 << 31) - 1, -(1 << 63),
    10**4299, 1.5, 0.0, float("inf"), float("nan"), "", "a", ".", "..", "...", "../x", "/", "a//b", "x" * 129,
    "\0", "\\", "\n", "\x1b[2J", "\ud800", "\u202e", "é", "0" * 14, "f" * 16, "F" * 16, "f" * 17, "00", "0", "zz",
    "00" * 16, "00" * 32, [], {}, [[]], [[[]]], {"": {}}, [0, 0], [-1, -1], ["", ""], [[0, 0]], ["a", "ff" * 65],
)  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in the tree, as its container and key."""
    found, open_values = [], [value]
    while open_values:
        item = open_values.pop()
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        for key, inner in pairs:
            found.append((item, key))
            if isinstance(inner, dict | list):
                open_values.append(inner)
    return found


def _json(rng: random.Random, data: bytes) -> bytes:
    """One to three changes of a text's tree."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return of_bytes(rng, data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _places(value) if isinstance(value, dict | list) else []
        if not places:
            return json.dumps(rng.choice(ODD)).encode()
        container, key = rng.choice(places)
        _change_tree(rng, container, key, rng.choice(places))
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=rng.random() < 0.5).encode(
            "utf-8", "backslashreplace"
        )
    except (TypeError, ValueError, RecursionError):
        return of_bytes(rng, data)


def _change_tree(rng: random.Random, container: Any, key: Any, other: tuple[Any, Any]) -> None:
    old, kind = container[key], rng.randrange(8)
    if kind < 3:
        container[key] = rng.choice(ODD)
    elif kind == 3:
        del container[key]
    elif kind == 4 and isinstance(old, int):
        container[key] = old + rng.choice((-1, 1, 1 << 32))
    elif kind == 4 and isinstance(old, str):
        container[key] = rng.choice((old + "0", old[:-1], old.upper(), old * 2))
    elif kind == 5 and isinstance(container, list):
        container.insert(rng.randrange(len(container) + 1), old)
    elif kind == 5:
        container["more"] = old
    elif kind == 6 and isinstance(container, list):
        rng.shuffle(container)
    elif kind == 7 and not isinstance(other[0][other[1]], dict | list):
        container[key] = other[0][other[1]]
    else:
        container[key] = [old]


def _text(rng: random.Random, data: bytes) -> bytes:
    """One change of a text as text: a key twice, nests, long numbers, other encodings."""
    kind = rng.randrange(8)
    if kind == 0:
        at = data.find(b'":')
        return data[:1] + b'"a":0,"a":0,' + data[1:] if at > 0 else data
    if kind == 1:
        return data[:-1] + b',"deep":' + b"[" * (depth := rng.choice((10, 990, 5000, 100000))) + b"]" * depth + b"}"
    if kind == 2:
        return data[:-1] + b',"long":' + b"9" * rng.choice((20, 4300, 4301, 30000)) + b"}"
    if kind == 3:
        return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-8-sig", "utf-32-le")), "replace")
    if kind == 4:
        return data.replace(b":", b" :\t", 1).replace(b",", b",\r\n", 2)
    if kind == 5:
        return data.replace(b'"', rng.choice((b"'", b"", b'\\"')), rng.choice((1, 2)))
    return of_bytes(rng, data)


def of_content(rng: random.Random, kind: int, data: bytes) -> bytes:
    """One change of a section's content, of the sort that its kind invites."""
    if kind in TEXT_KINDS:
        return _json(rng, data) if rng.random() < 0.85 else _text(rng, data)
    if kind == Kind.BLOBS:
        return of_bytes(rng, data)
    return _columns(rng, data)


def list_blobs_again(rng: random.Random, pieces: Sequence[Piece]) -> list[Piece]:
    """Have the list of blobs fit the blobs' bytes, cut where it cut them before."""
    joined = b"".join(piece.data for piece in pieces if piece.kind == Kind.BLOBS)
    result = list(pieces)
    for index, piece in enumerate(pieces):
        if piece.kind != Kind.CAPTURE:
            continue
        try:
            value = json.loads(piece.data)
            sizes = [int(blob["size"]) for blob in value["blobs"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        at, listed = 0, []
        for number_of, size in enumerate(sizes):
            end = len(joined) if number_of + 1 == len(sizes) else min(len(joined), at + size)
            listed.append({"size": end - at, "sha256": hashlib.sha256(joined[at:end]).hexdigest()})
            at = end
        value["blobs"] = listed
        result[index] = replace(piece, data=json.dumps(value, sort_keys=True).encode(), stored=None)
    return result


def of_frame(rng: random.Random, piece: Piece) -> Piece:
    """Other frames for the same content, and frames that are none."""
    data, kind = piece.data, rng.randrange(10)
    if kind == 0:
        return replace(piece, stored=zstandard.ZstdCompressor(level=rng.choice((-5, 1, 19, 22))).compress(data))
    if kind == 1:
        return replace(piece, stored=zstandard.ZstdCompressor(write_checksum=True).compress(data))
    if kind == 2:
        return replace(piece, stored=zstandard.ZstdCompressor(write_content_size=False).compress(data))
    if kind == 3:
        frame = zstandard.ZstdCompressor().compress(data)
        return replace(piece, stored=frame + rng.choice((b"\0", frame, bytes.fromhex("502a4d1800000000"))))
    if kind == 4:
        return replace(piece, stored=of_bytes(rng, piece.frame) or b"\0")
    if kind == 5:
        return replace(piece, stored=rng.randbytes(rng.randrange(1, 60)))
    if kind == 6:
        frame, window = piece.frame, rng.randrange(256)
        # A frame header with window and 8 bytes of content size; the block behind it repeats one byte.
        size = rng.choice((len(data), number(rng, 30), 1 << 26, 1 << 30, number(rng, 64)))
        block = (
            bytes.fromhex("28b52ffd") + bytes((0xC0, window)) + size.to_bytes(8, "little") + bytes.fromhex("03001000")
        )
        return replace(piece, stored=block, raw=rng.choice((size, len(data))))
    if kind == 7:
        return replace(piece, stored=data or b"\0")
    if kind == 8:
        halves = (data[: len(data) // 2], data[len(data) // 2 :])
        return replace(piece, stored=b"".join(zstandard.ZstdCompressor().compress(half) for half in halves))
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=rng.choice((10, 20, 27)))
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=len(data))
    return replace(piece, stored=stream.compress(data) + stream.flush())


def of_agreement(rng: random.Random, pieces: list[Piece]) -> list[Piece]:
    """More processes or fewer, bodies over and over, blobs cut elsewhere."""
    kind = rng.randrange(4)
    if kind == 0:
        last = max((piece.process for piece in pieces if Kind.PROCESS <= piece.kind <= Kind.PARAMETERS), default=0)
        copies = [replace(piece, process=last + 1 & 0xFFFFFFFF) for piece in pieces if piece.process == last]
        return [*pieces, *copies]
    if kind == 1:
        others = [piece for piece in pieces if piece.kind != Kind.BLOBS]
        joined = b"".join(piece.data for piece in pieces if piece.kind == Kind.BLOBS)
        at = rng.randrange(len(joined) + 1)
        return [*others, *(Piece(Kind.BLOBS, 0xFFFFFFFF, part) for part in (joined[:at], joined[at:]))]
    if kind == 2:
        many = rng.choice((2, 1 << 10, 1 << 14))
        return [
            replace(piece, data=_more_bodies(piece.data, many), stored=None) if piece.kind == Kind.BODIES else piece
            for piece in pieces
        ]
    return [replace(piece, data=b"", stored=None) if rng.random() < 0.2 else piece for piece in pieces]


def _more_bodies(data: bytes, many: int) -> bytes:
    if len(data) < 24:
        return data
    count = int.from_bytes(data[:4], "little")
    return (count + many & 0xFFFFFFFF).to_bytes(4, "little") + data[4:24] + bytes(4 * many) + data[24:]
