"""The column layouts of the large tables, and equality by content for dataclasses that hold arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Table: TypeAlias = npt.NDArray[np.void]
"""A structured array of one of the layouts below."""
Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint32]

ALLOCATION = np.dtype(
    [
        ("address", "<u8"),
        ("size", "<u8"),  # as asked for
        ("taken", "<u8"),  # bytes of the arena that it took
        ("ordinal", "<u8"),  # within its arena
        ("device", "<u4"),
        ("born", "<u4"),  # step at which it was made
        ("died", "<u4"),  # step at which it was freed, NONE = alive at the end
        ("born_thread", "<u2"),
        ("died_thread", "<u2"),
        ("arena", "u1"),
        ("origin", "u1"),
    ]
)
"""One row an allocation in the order in which they were made. Steps count the allocations, frees and
graphs of a process, from 0."""

NODE = np.dtype(
    [
        ("type", "<u4"),  # NodeType
        ("kernel", "<u4"),  # KERNEL: index of Process.kernels
        ("attributes", "<u4"),  # KERNEL: index of Process.attribute_sets
        ("parameter_size", "<u4"),  # KERNEL: bytes of its parameter block
        ("context", "<u4"),  # KERNEL, MEMSET, MEMCPY: index of Process.contexts, NONE = not named
        ("child", "<u4"),  # GRAPH: index of Process.groups
        ("reason", "<u4"),  # index of Process.node_reasons, NONE = can be rebuilt
    ]
)
"""A node of a topology group: what all members share. Fields that do not apply are NONE, parameter_size 0."""

EDGE = np.dtype([("start", "<u4"), ("end", "<u4"), ("data", "<u8")])
"""Node indices within the group, and the 8 bytes of CUgraphEdgeData as a little-endian number. Each edge once,
in the order of (bytes of data, start, end)."""

LAUNCH = np.dtype([("grid", "<u4", (3,)), ("block", "<u4", (3,)), ("shared_bytes", "<u4")])
"""One row for each KERNEL node of each body."""

MEMSET = np.dtype(
    [
        ("destination", "<u8"),
        ("pitch", "<u8"),
        ("width", "<u8"),
        ("height", "<u8"),
        ("value", "<u4"),
        ("element_size", "<u4"),
    ]
)
"""One row for each MEMSET node of each body."""

COPY_SIZE = 200
"""Bytes of a CUDA_MEMCPY3D."""
COPY_SIDES = {"source": 32, "destination": 120}
"""Where each side's fields start in a CUDA_MEMCPY3D: u32 memory type; at +8 host, +16 device, +24 array, +32
reserved."""
PARAMETER_ALIGNMENT = 16
"""Each kernel node's parameter block starts at a multiple of this, and is filled up to one with zeros."""


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make the array read-only and return it."""
    array.setflags(write=False)
    return array


def sorted_edges(edges: Table) -> Table:
    """Bring edges into their order, each once."""
    order = np.lexsort((edges["end"], edges["start"], edges["data"].byteswap()))
    ordered = edges[order].astype(EDGE)
    return frozen(ordered[changes(ordered)])


def dependency_order(edges: Table, ordered: Table) -> Words:
    """Tell what `Group.order` is of edges that were told with each node's dependencies in their order.

    `ordered` is what `sorted_edges` made of them.
    """
    if len(edges) != len(ordered) or (np.bincount(ordered["end"]) < 2).all():
        return frozen(np.zeros(0, np.uint32))
    plain = np.argsort(ordered["end"], kind="stable")
    place = np.empty(len(edges), np.uint32)
    place[np.lexsort((edges["end"], edges["start"], edges["data"].byteswap()))] = np.arange(len(edges))
    order = place[np.argsort(edges["end"], kind="stable")]
    return frozen(order[: len(order) if (order != plain).any() else 0])


def padded_sizes(sizes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Give the sizes of parameter blocks with their filling."""
    wide = sizes.astype(np.int64)
    return (wide + (PARAMETER_ALIGNMENT - 1)) & -PARAMETER_ALIGNMENT


def starts(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Tell where each of consecutive pieces starts, and where the last one ends: one more entry than sizes."""
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def changes(ordered: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Tell where in ordered values each value begins that differs from the one before it."""
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(fresh)


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give the values in ascending order, each once. `numpy.unique` does more, but imports masked arrays first."""
    ordered = np.sort(values)
    found: npt.NDArray[Any] = ordered[changes(ordered)]
    return found


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return isinstance(right, np.ndarray) and left.dtype == right.dtype and bool(np.array_equal(left, right))
    return bool(left == right)


class ByContent:
    """Equality by content for dataclasses (declared with eq=False) that hold arrays."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]
