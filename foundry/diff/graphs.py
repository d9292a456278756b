"""Compares two graphs node by node."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from foundry.diff.difference import Difference
from foundry.model import Graph, Process
from foundry.model.tables import COPY_SIDES
from foundry.model.views import GraphView, NodeView

Side = tuple[Process, Graph]
ROW_AT, PITCH_AT = -24, 40
"""Offsets of the first row and plane, and of pitch and height, from a side of a copy."""
ROWS_AT = 184
"""Offset of the height and depth of a copy."""


def compare_graphs(where: str, left: Side, right: Side) -> Iterator[Difference]:
    """List the differences of two graphs, those of the first node that differs in each body."""
    for name in ("metadata", "device", "instantiate_flags", "reason_code"):
        before, after = getattr(left[1], name), getattr(right[1], name)
        if before != after:
            yield Difference(where, name.replace("_", " "), str(before), str(after))
    for what, look in (("context", _context), ("memory", _references)):
        described = look(*left), look(*right)
        if described[0] != described[1]:
            yield Difference(where, what, *described)
    views = GraphView(left[0]), GraphView(right[0])
    yield from _bodies(where, views, (left[1].body, right[1].body))


def context_of(process: Process, number: int) -> str:
    """Name a context without the number that it has in this capture."""
    if number >= len(process.contexts):
        return "none"
    context = process.contexts[number]
    return f"{'primary' if context.primary else f'created {context.ordinal}'} of device {context.device}"


def _context(process: Process, graph: Graph) -> str:
    return context_of(process, graph.context)


def _references(process: Process, graph: Graph) -> str:
    """Name the allocations by where they lie: other captures make them in another order."""
    table = process.allocations[list(graph.references)]
    columns = (table[name].tolist() for name in ("device", "address", "size"))
    return ", ".join(
        f"{size} at {address:#x} of device {device}" for device, address, size in sorted(zip(*columns, strict=True))
    )


def _bodies(where: str, views: tuple[GraphView, GraphView], bodies: tuple[int, int]) -> Iterator[Difference]:
    groups = views[0].group(bodies[0]), views[1].group(bodies[1])
    if len(groups[0].nodes) != len(groups[1].nodes):
        yield Difference(where, "nodes", str(len(groups[0].nodes)), str(len(groups[1].nodes)))
        return
    if groups[0].edges.tobytes() != groups[1].edges.tobytes():
        yield Difference(where, "edges", f"{len(groups[0].edges)} edges", f"{len(groups[1].edges)} other edges")
    elif groups[0].order.tobytes() != groups[1].order.tobytes():
        yield Difference(where, "edges", f"{len(groups[0].edges)} edges", "the same in another order")
    for one, other in zip(views[0].nodes(bodies[0]), views[1].nodes(bodies[1]), strict=True):
        place = f"{where}: node {one.index}"
        found = list(_nodes(place, (views[0].process, one), (views[1].process, other)))
        if found:
            yield from found
            return
        if one.child is not None and other.child is not None:
            yield from _bodies(place, views, (one.child, other.child))


def _nodes(where: str, left: tuple[Process, NodeView], right: tuple[Process, NodeView]) -> Iterator[Difference]:
    before, after = _described(*left), _described(*right)
    for name in before:
        if before[name] != after[name]:
            yield Difference(where, name, _text(before[name]), _text(after[name]))


def _described(process: Process, node: NodeView) -> dict[str, object]:
    """Give what makes up a node, without indices that another capture may number otherwise."""
    kernel = node.kernel
    image = process.images[kernel.image] if kernel and kernel.image < len(process.images) else None
    return {
        "type": getattr(node.type, "name", node.type),
        "reason": node.reason,
        "kernel": kernel.name if kernel else "",
        "image": f"{image.key.hex()}, load {image.instance}" if image else "",
        "layout": kernel.parameters if kernel else (),
        "kernel device": kernel.device if kernel else None,
        "function attributes": kernel.attributes if kernel else (),
        "grid": node.grid,
        "block": node.block,
        "shared bytes": node.shared_bytes,
        "launch attributes": node.attributes,
        "parameters": node.parameters or b"",
        "memset": _memset(node.memset),
        "copy": _copy(node.copy),
        "event": node.event,
        "event flags": _flags(process, node.event),
        "child": node.child is not None,
    }


def _memset(row: dict[str, int] | None) -> dict[str, int] | None:
    """Leave out the pitch of a single row, which a driver need not give back as it was set."""
    return {**row, "pitch": 0} if row and row["height"] <= 1 else row


def _copy(data: bytes | None) -> bytes:
    """Leave out pitch and height of a side of which a copy takes the first row alone, as with a memset."""
    if not data or max(struct.unpack_from("<2Q", data, ROWS_AT)) > 1:
        return data or b""
    told = bytearray(data)
    for side in COPY_SIDES.values():
        if not any(struct.unpack_from("<2Q", data, side + ROW_AT)):
            told[side + PITCH_AT : side + PITCH_AT + 16] = bytes(16)
    return bytes(told)


def _flags(process: Process, event: int | None) -> int | None:
    return process.events[event] if event is not None and event < len(process.events) else None


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
