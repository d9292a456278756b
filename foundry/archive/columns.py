"""Tables, one column after the other: like values stand together, so that they compress well."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foundry.archive.text import ContentError
from foundry.model import Group
from foundry.model.tables import ALLOCATION, COPY_SIZE, EDGE, LAUNCH, MEMSET, NODE, Table, Words, frozen

_COPY_WORDS = COPY_SIZE // 8


def table_columns(table: Table) -> list[bytes]:
    """Lay out each field of the table, all rows; of a field with several values each value is a column."""
    parts = []
    for name in table.dtype.names or ():
        column = table[name]
        parts.append(np.ascontiguousarray(column.T).tobytes())
    return parts


class Reading:
    """Reads columns from a section's bytes in order; a count that does not fit the bytes is a ContentError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def counts(self, number: int) -> tuple[int, ...]:
        """Read that many counts."""
        return tuple(self.array("<u4", number).tolist())

    def array(self, kind: Any, count: int) -> npt.NDArray[Any]:
        """Read a column."""
        dtype = np.dtype(kind)
        size = dtype.itemsize * count
        if size > len(self._data) - self._at:
            raise ContentError(f"{count} values at byte {self._at} pass the end of the section")
        found = np.frombuffer(self._data, dtype, count, self._at)
        self._at += size
        return found

    def table(self, dtype: np.dtype[Any], count: int) -> Table:
        """Read all columns of a table."""
        if count * dtype.itemsize > len(self._data) - self._at:
            raise ContentError(f"{count} rows at byte {self._at} pass the end of the section")
        table = np.empty(count, dtype)
        for name in dtype.names or ():
            base, shape = dtype[name].subdtype or (dtype[name], ())
            values = int(np.prod(shape, dtype=np.int64))
            column = self.array(base, count * values)
            table[name] = column.reshape(values, count).T if shape else column
        return frozen(table)

    def finish(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._data):
            raise ContentError(f"{len(self._data) - self._at} bytes are left at the end of the section")


def encode_allocations(table: Table) -> bytes:
    """Lay out an ALLOCATIONS section."""
    return b"".join([struct.pack("<I", len(table)), *table_columns(table)])


def decode_allocations(data: bytes) -> Table:
    """Read an ALLOCATIONS section."""
    reading = Reading(data)
    (count,) = reading.counts(1)
    table = reading.table(ALLOCATION, count)
    reading.finish()
    return table


def encode_groups(groups: Sequence[Group]) -> bytes:
    """Lay out a GROUPS section. Edges are stored as steps, so that chains become runs of ones."""
    nodes = np.concatenate([np.zeros(0, NODE), *(group.nodes for group in groups)])
    edges = [np.zeros(0, EDGE)]
    for group in groups:
        steps = group.edges.copy()
        steps["end"] = group.edges["end"] - group.edges["start"]
        steps["start"] = np.diff(group.edges["start"], prepend=np.uint32(0))
        edges.append(steps)
    counts = [len(groups), *(len(group.nodes) for group in groups), *(len(group.edges) for group in groups)]
    return b"".join([np.array(counts, "<u4").tobytes(), *table_columns(nodes), *table_columns(np.concatenate(edges))])


def decode_groups(data: bytes) -> tuple[Group, ...]:
    """Read a GROUPS section."""
    reading = Reading(data)
    (count,) = reading.counts(1)
    node_counts, edge_counts = reading.counts(count), reading.counts(count)
    nodes = reading.table(NODE, sum(node_counts))
    steps = reading.table(EDGE, sum(edge_counts))
    reading.finish()
    groups = []
    node_at = edge_at = 0
    for node_count, edge_count in zip(node_counts, edge_counts, strict=True):
        part = steps[edge_at : edge_at + edge_count]
        edges = part.copy()
        edges["start"] = np.cumsum(part["start"], dtype=np.uint32)
        edges["end"] = edges["start"] + part["end"]
        groups.append(Group(nodes[node_at : node_at + node_count], frozen(edges)))
        node_at, edge_at = node_at + node_count, edge_at + edge_count
    return tuple(groups)


def encode_bodies(
    bodies: Words, children: Words, event_nodes: Words, launches: Table, memsets: Table, copies: npt.NDArray[np.uint8]
) -> bytes:
    """Lay out a BODIES section."""
    rows = copies.reshape(-1, COPY_SIZE)
    counts = [len(bodies), len(children), len(event_nodes), len(launches), len(memsets), len(rows)]
    return b"".join(
        [
            np.array(counts, "<u4").tobytes(),
            *(np.ascontiguousarray(column, "<u4").tobytes() for column in (bodies, children, event_nodes)),
            *table_columns(launches),
            *table_columns(memsets),
            np.ascontiguousarray(rows.view("<u8").reshape(-1, _COPY_WORDS).T).tobytes(),
        ]
    )


def decode_bodies(data: bytes) -> dict[str, Any]:
    """Read a BODIES section into the fields of `Process` of the same names."""
    reading = Reading(data)
    counts = reading.counts(6)
    fields: dict[str, Any] = {
        name: reading.array("<u4", count)
        for name, count in zip(("bodies", "children", "event_nodes"), counts, strict=False)
    }
    fields["launches"] = reading.table(LAUNCH, counts[3])
    fields["memsets"] = reading.table(MEMSET, counts[4])
    words = reading.array("<u8", counts[5] * _COPY_WORDS).reshape(_COPY_WORDS, counts[5])
    fields["copies"] = frozen(np.ascontiguousarray(words.T).reshape(-1).view(np.uint8))
    reading.finish()
    return fields
