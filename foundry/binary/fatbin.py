"""Takes the entry for one GPU out of a fatbin. No length in it is trusted.

A container is a header (magic, version, header size, body size) and entries one after the other. An entry is a header
and a payload: an ELF cubin or PTX text, plain or compressed. Whatever is not plainly the one cubin for the GPU is not
unpacked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

MAGIC = 0xBA55ED50
ELF_MAGIC = b"\x7fELF"
KIND_PTX = 1
KIND_ELF = 2
FLAG_COMPRESSED = 0x2000
FLAG_ZSTD = 0x8000
LARGEST_CUBIN = 1 << 30
ELF_EXECUTABLE = 2

_CONTAINER = struct.Struct("<IHHQ")
_ENTRY_SIZE = 64


@dataclass(frozen=True, slots=True)
class FatbinEntry:
    """One entry: its kind, architecture (90 for sm_90), flags, and the payload as stored."""

    kind: int
    architecture: int
    flags: int
    raw_size: int
    payload: bytes


class FatbinError(ValueError):
    """The bytes are not a fatbin that can be unpacked; the text says what is in the way."""


def entries(data: bytes) -> Iterator[FatbinEntry]:
    """List the entries of all containers in the bytes."""
    at = 0
    while at < len(data):
        if not any(data[at:]):
            return
        if len(data) - at < _CONTAINER.size:
            raise FatbinError("cut inside a container header")
        magic, _, header_size, body_size = _CONTAINER.unpack_from(data, at)
        if magic != MAGIC:
            raise FatbinError(f"no container at byte {at}")
        start = at + header_size
        if header_size < _CONTAINER.size or body_size > len(data) - start:
            raise FatbinError("container passes the end of the bytes")
        at = start + body_size
        yield from _container_entries(data, start, at)


def _container_entries(data: bytes, at: int, end: int) -> Iterator[FatbinEntry]:
    while at < end:
        if end - at < _ENTRY_SIZE:
            raise FatbinError("cut inside an entry header")
        kind = struct.unpack_from("<H", data, at)[0]
        header_size, padded_size, stored_size = struct.unpack_from("<IQI", data, at + 4)
        architecture = struct.unpack_from("<I", data, at + 28)[0]
        flags = struct.unpack_from("<Q", data, at + 40)[0]
        raw_size = struct.unpack_from("<Q", data, at + 56)[0]
        start = at + header_size
        if header_size < _ENTRY_SIZE or start > end or padded_size > end - start or stored_size > padded_size:
            raise FatbinError("entry passes the end of its container")
        compressed = flags & (FLAG_COMPRESSED | FLAG_ZSTD)
        size = stored_size if compressed else padded_size
        yield FatbinEntry(kind, architecture, flags, raw_size, data[start : start + size])
        at = start + padded_size


def unpack(data: bytes, architecture: int) -> bytes:
    """Return the cubin for that GPU (90 for compute capability 9.0), or raise FatbinError with what is in the way."""
    fitting = [entry for entry in entries(data) if entry.kind == KIND_ELF and entry.architecture == architecture]
    if len(fitting) != 1:
        raise FatbinError(f"{len(fitting) or 'no'} cubins for sm_{architecture}")
    cubin = _payload(fitting[0])
    if not cubin.startswith(ELF_MAGIC) or len(cubin) < 18:
        raise FatbinError(f"the entry for sm_{architecture} is not an ELF file")
    if struct.unpack_from("<H", cubin, 16)[0] != ELF_EXECUTABLE:
        raise FatbinError(f"the cubin for sm_{architecture} is relocatable")
    return cubin


def texts(data: bytes, architecture: int) -> list[bytes]:
    """Return the PTX of which the driver compiles one for that GPU: none where there is machine code that it may run.

    FatbinError where one cannot be unpacked.
    """
    listed = list(entries(data))
    for entry in listed:
        same = entry.architecture // 10 == architecture // 10 and entry.architecture <= architecture
        if entry.kind == KIND_ELF and same:
            return []
    return [_payload(entry) for entry in listed if entry.kind == KIND_PTX and entry.architecture <= architecture]


def _payload(entry: FatbinEntry) -> bytes:
    if not entry.flags & (FLAG_ZSTD | FLAG_COMPRESSED):
        return entry.payload
    if not entry.flags & FLAG_ZSTD:
        raise FatbinError("compressed by an older scheme")
    if not 0 < entry.raw_size <= LARGEST_CUBIN:
        raise FatbinError(f"a cubin of {entry.raw_size} bytes is past the limit")
    try:
        declared = zstandard.frame_content_size(entry.payload)
        if declared not in (-1, entry.raw_size):
            raise FatbinError(f"{declared} bytes in the frame, {entry.raw_size} in the entry")
        stream = zstandard.ZstdDecompressor().stream_reader(entry.payload)
        cubin = stream.read(entry.raw_size + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise FatbinError(f"damaged: {error}") from None
    if len(cubin) != entry.raw_size:
        raise FatbinError(f"{len(cubin)} bytes unpacked, {entry.raw_size} declared")
    return cubin
