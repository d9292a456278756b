"""Graph bodies, read into columns: a node costs a few list entries, not an object."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from foundry.model.checks import LARGEST_BLOCK
from foundry.model.constants import NodeType
from foundry.model.tables import COPY_SIZE, PARAMETER_ALIGNMENT, Table
from foundry.spool.cursor import Cursor, MalformedError

DEEPEST = 16
"""Levels of child graphs that are followed."""

_KERNEL = struct.Struct("<IIQ28sQI")
_MEMSET = struct.Struct("<QQIIQQQ")
_U32 = struct.Struct("<I")
_TWO = struct.Struct("<II")
_U64 = struct.Struct("<Q")
_EDGE = np.dtype([("start", "<u4"), ("end", "<u4"), ("data", "<u8")])
_MASK = PARAMETER_ALIGNMENT - 1
_KERNEL_TYPE = int(NodeType.KERNEL)
_FILL = bytes(PARAMETER_ALIGNMENT)


@dataclass(slots=True)
class Body:
    """One graph's nodes and edges, with raw handles.

    The first five lists have an entry for each node, 0 or empty where it has no such thing; the others have one for
    each node that has, in node order. `launches` and `parameters` hold those of all kernel nodes, one after the other.
    """

    types: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    kernels: list[int] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    attributes: list[bytes] = field(default_factory=list)
    launches: bytes = b""
    parameters: bytes = b""
    memsets: list[tuple[int, ...]] = field(default_factory=list)
    copies: list[bytes] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    children: list[Body] = field(default_factory=list)
    edges: Table = field(default_factory=lambda: np.zeros(0, _EDGE))


def read_body(cursor: Cursor, depth: int = 0) -> Body:
    """Read a GRAPH BODY."""
    if depth > DEEPEST:
        raise MalformedError(f"child graphs nest deeper than {DEEPEST}")
    body = Body()
    count = cursor.u32()
    if count * 8 > cursor.end - cursor.at:
        raise MalformedError(f"{count} nodes at {cursor.at} pass the end of the payload")
    launches: list[bytes] = []
    blocks: list[bytes] = []
    while len(body.types) < count:
        _read_kernels(cursor, body, launches, blocks, count - len(body.types))
        if len(body.types) < count:
            _read_other(cursor, body, depth)
    body.launches, body.parameters = b"".join(launches), b"".join(blocks)
    edges = cursor.u32()
    at = cursor.take(edges * _EDGE.itemsize)
    body.edges = np.frombuffer(cursor.data, _EDGE, edges, at)
    if edges and max(int(body.edges["start"].max()), int(body.edges["end"].max())) >= count:
        raise MalformedError("an edge names a node that is not there")
    return body


def _read_kernels(cursor: Cursor, body: Body, launches: list[bytes], blocks: list[bytes], most: int) -> None:
    """Read kernel nodes for as long as they follow one another. Nearly all nodes are such, so this is the hot loop."""
    data, at, end = cursor.data, cursor.at, cursor.end
    unpack, header = _KERNEL.unpack_from, _KERNEL.size
    kernels, contexts, sizes, attributes = body.kernels, body.contexts, body.sizes, body.attributes
    recent = attributes[-1] if attributes else b""
    before = len(kernels)
    for _ in range(most):
        if header > end - at:
            break
        kind, reason, kernel, launch, context, size = unpack(data, at)
        if kind != _KERNEL_TYPE or reason:
            break
        start = at + header
        at = start + size
        if size > LARGEST_BLOCK:
            raise MalformedError(f"a parameter block has {size} bytes")
        if at > end:
            raise MalformedError(f"{size} bytes at {start} pass the end of the payload at {end}")
        # A list carries its own length, so bytes that start like the last one hold the same list.
        if recent and data.startswith(recent, at, end):
            at += len(recent)
        else:
            cursor.at = at
            recent = _attribute_bytes(cursor)
            at = cursor.at
        block = data[start : start + size]
        launches.append(launch)
        blocks.append(block + _FILL[: -size & _MASK] if size & _MASK else block)
        kernels.append(kernel)
        contexts.append(context)
        sizes.append(size)
        attributes.append(recent)
    cursor.at = at
    found = len(kernels) - before
    body.types.extend([_KERNEL_TYPE] * found)
    body.reasons.extend([""] * found)


def _read_other(cursor: Cursor, body: Body, depth: int) -> None:
    """Read a node that is no kernel node, or one with a reason."""
    kind = cursor.u32()
    reason = cursor.text()
    context = 0
    if reason or kind == NodeType.EMPTY:
        pass
    elif kind == NodeType.MEMSET:
        *fields, context = _MEMSET.unpack_from(cursor.data, cursor.take(_MEMSET.size))
        body.memsets.append(tuple(fields))
    elif kind == NodeType.MEMCPY:
        copy = cursor.counted()
        if len(copy) != COPY_SIZE:
            raise MalformedError(f"a copy has {len(copy)} bytes instead of {COPY_SIZE}")
        body.copies.append(copy)
        context = cursor.u64()
    elif kind == NodeType.GRAPH:
        body.children.append(read_body(cursor, depth + 1))
    elif kind in (NodeType.EVENT_RECORD, NodeType.WAIT_EVENT):
        body.events.append(cursor.u64())
    elif kind == NodeType.KERNEL:
        raise MalformedError(f"a kernel node at {cursor.at} passes the end of the payload")
    else:
        raise MalformedError(f"node type {kind} has no reason and no layout")
    body.types.append(kind)
    body.reasons.append(reason)
    body.kernels.append(0)
    body.contexts.append(context)
    body.sizes.append(0)


def _attribute_bytes(cursor: Cursor) -> bytes:
    start = cursor.at
    for _ in range(cursor.u32()):
        cursor.take(4)
        if cursor.u32() > 64:
            raise MalformedError("a launch attribute is longer than 64 bytes")
        cursor.at -= 4
        cursor.take(4 + _U32.unpack_from(cursor.data, cursor.at)[0])
    return cursor.data[start : cursor.at]


def attribute_set(raw: bytes) -> tuple[tuple[int, bytes], ...]:
    """Decode the launch attributes of a node: id and value, sorted by id."""
    count = _U32.unpack_from(raw, 0)[0]
    at, found = 4, []
    for _ in range(count):
        number, length = _TWO.unpack_from(raw, at)
        at += 8
        found.append((number, raw[at : at + length]))
        at += length
    return tuple(sorted(found))
