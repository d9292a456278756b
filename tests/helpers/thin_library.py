"""The library file of the thin vectors: an ELF header, a build id, and fatbin containers at places of their own."""

from __future__ import annotations

import struct

import zstandard

from foundry.model import LibraryPlace

NAME = "libkernels.so"
BUILD_ID = "0123456789abcdef0123456789abcdef01234567"
ARCHITECTURE = 90


def _cubin(text: bytes) -> bytes:
    """An ELF file of a GPU's, as far as its header says so."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, 190) + bytes(44) + text.ljust(64, b".")


def _entry(cubin: bytes, architecture: int, compressed: bool) -> bytes:
    stored = zstandard.ZstdCompressor().compress(cubin) if compressed else cubin
    padded = stored.ljust(-(-len(stored) // 8) * 8, b"\0")
    entry = bytearray(64)
    struct.pack_into("<HHIQI", entry, 0, 2, 0x101, len(entry), len(padded), len(stored))
    struct.pack_into("<I", entry, 28, architecture)
    struct.pack_into("<Q", entry, 40, 0x8000 if compressed else 0)
    struct.pack_into("<Q", entry, 56, len(cubin) if compressed else 0)
    return bytes(entry) + padded


def _container(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


_PLAIN, _PACKED, _OTHER = _cubin(b"plain"), _cubin(b"compressed " * 5), _cubin(b"for another GPU")
_CONTAINERS = (
    _container(_entry(_OTHER, 80, False), _entry(_PLAIN, ARCHITECTURE, False)),
    _container(_entry(_PACKED, ARCHITECTURE, True), _entry(_OTHER, 100, True)),
    _container(_entry(_OTHER, 80, True)),
)
_FIRST = 512
_OFFSETS = tuple(_FIRST + sum(len(before) + 24 for before in _CONTAINERS[:number]) for number in range(3))

CUBINS = (_PLAIN, _PACKED, _CONTAINERS[2])
"""The blobs that are made of the containers: two cubins that are taken out, and one container as it is."""
PLACES = tuple(
    LibraryPlace(NAME, BUILD_ID, offset, len(container), architecture)
    for offset, container, architecture in zip(_OFFSETS, _CONTAINERS, (ARCHITECTURE, ARCHITECTURE, 0), strict=True)
)


def library_file() -> bytes:
    """The bytes of the library."""
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes.fromhex(BUILD_ID)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<16sHHIQQQIHHHHHH", identity, 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, 120, 120, 120, len(note), len(note), 4)
    data = header + segment + note
    for offset, container in zip(_OFFSETS, _CONTAINERS, strict=True):
        data = data.ljust(offset, b"\xcc") + container
    return data + b"\xcc" * 40
