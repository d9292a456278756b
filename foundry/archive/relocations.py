"""The relocations section of a process: the addresses that move with their memory. Rows are stored as steps."""

from __future__ import annotations

import struct

import numpy as np

from foundry.archive.columns import Reading
from foundry.model import Proof
from foundry.model.proof import PLACE
from foundry.model.tables import Table, Words, frozen

_COUNTS = struct.Struct("<5IQ")


def encode_relocations(proof: Proof) -> bytes:
    """Lay out a RELOCATIONS section."""
    tables = proof.parameters, proof.copies, proof.texts
    parts = [
        _COUNTS.pack(len(proof.graphs), len(proof.memsets), *map(len, tables), proof.noise),
        _steps(proof.graphs),
        _steps(proof.memsets),
    ]
    for table in tables:
        parts += [_steps(table["row"]), np.ascontiguousarray(table["offset"]).tobytes()]
    return b"".join(parts)


def decode_relocations(data: bytes) -> Proof:
    """Read a RELOCATIONS section."""
    reading = Reading(data)
    graphs, memsets, *tables = reading.counts(5)
    (noise,) = reading.array("<u8", 1).tolist()
    lists = [_sums(reading.array("<u4", count)) for count in (graphs, memsets)]
    places = [_places(reading, count) for count in tables]
    reading.finish()
    return Proof(lists[0], places[0], lists[1], places[1], places[2], noise)


def _steps(rows: Words) -> bytes:
    return np.diff(rows, prepend=np.uint32(0)).astype("<u4").tobytes()


def _sums(steps: Words) -> Words:
    return np.cumsum(steps, dtype=np.uint32)


def _places(reading: Reading, count: int) -> Table:
    rows, offsets = _sums(reading.array("<u4", count)), reading.array("<u4", count)
    table = np.empty(count, PLACE)
    table["row"], table["offset"] = rows, offsets
    return frozen(table)
