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

_HEAD = np.dtype(
    [
        ("type", "<u4"),
        ("reason_length", "<u4"),
        ("kernel", "<u8"),
        ("launch", "V28"),
        ("context", "<u8"),
        ("size", "<u4"),
    ]
)
"""What stands in front of the parameter block of a kernel node without a reason."""
_BEGIN_AND_SIZE = struct.Struct("<Q44xI")
_PLAIN_KERNEL = int(NodeType.KERNEL)
"""A head's first 8 bytes: this type, and no reason."""
_NO_ATTRIBUTES = bytes(4)
_MOST_KNOWN = 16
_MEMSET = struct.Struct("<QQIIQQQ")
_U32 = struct.Struct("<I")
_TWO = struct.Struct("<II")
_EDGE = np.dtype([("start", "<u4"), ("end", "<u4"), ("data", "<u8")])

NODE = np.dtype([("type", "<u4"), ("size", "<u4"), ("kernel", "<u8"), ("context", "<u8")])
"""A node with raw handles; 0 where it has no such thing."""


@dataclass(slots=True)
class Body:
    """One graph's nodes and edges, with raw handles.

    `nodes` and `reasons` (empty where there is none) have an entry for each node; the other lists have one for each
    node that has such a thing, in node order. `launches` and `parameters` hold those of all kernel nodes, one after the
    other.
    """

    nodes: Table = field(default_factory=lambda: np.zeros(0, NODE))
    reasons: list[str] = field(default_factory=list)
    attributes: list[bytes] = field(default_factory=list)
    launches: bytes = b""
    parameters: memoryview = field(default_factory=lambda: memoryview(b""))
    memsets: list[tuple[int, ...]] = field(default_factory=list)
    copies: list[bytes] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    children: list[Body] = field(default_factory=list)
    edges: Table = field(default_factory=lambda: np.zeros(0, _EDGE))

    @property
    def types(self) -> list[int]:
        """The type of each node."""
        return list(self.nodes["type"].tolist())

    @property
    def sizes(self) -> list[int]:
        """The bytes of each node's parameter block."""
        return list(self.nodes["size"].tolist())


@dataclass(slots=True)
class _Walk:
    """How far a body was read: where its kernel nodes start, and what the others are."""

    body: Body
    kernels: list[int] = field(default_factory=list)
    others: list[tuple[int, int, int, str]] = field(default_factory=list)
    """Index, type, context and reason."""
    known: list[bytes] = field(default_factory=lambda: [_NO_ATTRIBUTES])
    """Lists of launch attributes, the last one first."""

    @property
    def count(self) -> int:
        return len(self.kernels) + len(self.others)


def read_body(cursor: Cursor, depth: int = 0) -> Body:
    """Read a GRAPH BODY."""
    if depth > DEEPEST:
        raise MalformedError(f"child graphs nest deeper than {DEEPEST}")
    body = Body()
    count = cursor.u32()
    if count * 8 > cursor.end - cursor.at:
        raise MalformedError(f"{count} nodes at {cursor.start + cursor.at} pass the end of the payload")
    walk = _Walk(body)
    while walk.count < count:
        _walk_kernels(cursor, walk, count - walk.count)
        if walk.count < count:
            _read_other(cursor, walk, depth)
    _fill(cursor, walk)
    edges = cursor.u32()
    at = cursor.take(edges * _EDGE.itemsize)
    body.edges = np.frombuffer(cursor.data, _EDGE, edges, at).copy()
    if edges and max(int(body.edges["start"].max()), int(body.edges["end"].max())) >= count:
        raise MalformedError("an edge names a node that is not there")
    return body


def _walk_kernels(cursor: Cursor, walk: _Walk, most: int) -> None:
    """Step over kernel nodes for as long as they follow one another. Nearly all nodes are such: the hot loop."""
    data, at, end = cursor.data, cursor.at, cursor.end
    unpack, same, header = _BEGIN_AND_SIZE.unpack_from, data.startswith, _HEAD.itemsize
    kernels, attributes = walk.kernels, walk.body.attributes
    recent = walk.known[0]
    before, told = len(kernels), 0
    last = end - header
    for number in range(most):
        if at > last:
            break
        begin, size = unpack(data, at)
        if begin != _PLAIN_KERNEL:
            break
        kernels.append(at)
        at += header + size
        # A list carries its own length, so bytes that start like one hold the same list.
        if same(recent, at, end):
            at += len(recent)
        else:
            _require_block(cursor, at - size, size)
            attributes.extend([recent] * (number - told))
            told = number
            cursor.at = at
            recent = _known_attributes(cursor, walk.known)
            at = cursor.at
    cursor.at = at
    attributes.extend([recent] * (len(kernels) - before - told))


def _require_block(cursor: Cursor, at: int, size: int) -> None:
    if size > LARGEST_BLOCK:
        raise MalformedError(f"a parameter block has {size} bytes")
    if at + size > cursor.end:
        raise cursor.too_long(f"{size} bytes", at)


def _known_attributes(cursor: Cursor, known: list[bytes]) -> bytes:
    """Read a list of launch attributes, and put it in front of those that are known."""
    found = next((one for one in known if cursor.data.startswith(one, cursor.at, cursor.end)), None)
    if found is None:
        found = _attribute_bytes(cursor)
        del known[_MOST_KNOWN - 1 :]
    else:
        cursor.at += len(found)
        known.remove(found)
    known.insert(0, found)
    return found


def _fill(cursor: Cursor, walk: _Walk) -> None:
    """Fill in the columns of a body whose nodes were stepped over."""
    body, data = walk.body, cursor.data
    nodes = body.nodes = np.zeros(walk.count, NODE)
    body.reasons = [""] * walk.count
    plain = np.ones(walk.count, np.bool_)
    for index, kind, context, reason in walk.others:
        plain[index] = False
        nodes["type"][index], nodes["context"][index], body.reasons[index] = kind, context, reason
    if not walk.kernels:
        return
    at = np.array(walk.kernels, np.int64)
    heads = np.ndarray(len(data) - _HEAD.itemsize + 1, _HEAD, data, 0, 1)[at]
    sizes = heads["size"].astype(np.int64)
    _require_block(cursor, 0, int(sizes.max()))
    nodes["type"][plain] = NodeType.KERNEL
    for name in ("size", "kernel", "context"):
        nodes[name][plain] = heads[name]
    body.launches = heads["launch"].tobytes()
    starts = at + _HEAD.itemsize
    blocks = [data[begin:end] for begin, end in zip(starts.tolist(), (starts + sizes).tolist(), strict=True)]
    gaps = -sizes % PARAMETER_ALIGNMENT
    if gaps.any():
        fills = [bytes(size) for size in range(PARAMETER_ALIGNMENT)]
        filled = [b""] * (2 * len(blocks))
        filled[::2], filled[1::2] = blocks, map(fills.__getitem__, gaps.tolist())
        blocks = filled
    body.parameters = cursor.blocks.add(blocks)


def _read_other(cursor: Cursor, walk: _Walk, depth: int) -> None:
    """Read a node that is no kernel node, or one with a reason."""
    body, index = walk.body, walk.count
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
        raise MalformedError(f"a kernel node at {cursor.start + cursor.at} passes the end of the payload")
    else:
        raise MalformedError(f"node type {kind} has no reason and no layout")
    walk.others.append((index, kind, context, reason))


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
