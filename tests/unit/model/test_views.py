"""Nodes one by one, and what they point to."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from helpers.spool_writer import (
    SpoolWriter,
    body,
    child_node,
    copy_bytes,
    copy_node,
    empty_node,
    event_node,
    kernel_node,
    memset_node,
    refused_node,
)
from helpers.varied import varied_capture

from foundry.model import NodeType
from foundry.model.pointers import Target, find_pointers
from foundry.model.views import GraphView
from foundry.pack import pack

BASE, ARENA = 0x400000000000, 1 << 38


def test_nodes_come_with_their_own_rows(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path)
    spool.device()
    spool.image(0x10, b"SIMULATED IMAGE " * 4, bytes(32))
    spool.kernel(0x77, 0x10, "scale", [(0, 8), (8, 4)])
    spool.event(0xE0)
    spool.event(0xE1)
    first = struct.pack("<QI", 1, 2)
    inner = body([kernel_node(0x77, struct.pack("<QI", 3, 4)), event_node(0xE1)])
    nodes = [
        refused_node(3, "a host function"),
        kernel_node(0x77, first, (1, 2, 3), (4, 5, 6), 7, 0, [(5, b"\1")]),
        event_node(0xE0),
        child_node(inner),
        memset_node(BASE, 5),
        copy_node(copy_bytes(BASE, BASE + 64)),
        event_node(0xE1, record=False),
        empty_node(),
        kernel_node(0x77, struct.pack("<QI", 5, 6)),
    ]
    spool.graph(0x90, body([empty_node()]))
    spool.graph(0x91, body(nodes))
    process = pack(spool.write())[0].processes[0]
    view = GraphView(process)
    found = list(view.graph_nodes(process.graphs[1]))
    assert [node.type for node in found] == [3, 0, 7, 4, 2, 1, 6, 5, 0]
    assert found[0].reason == "a host function"
    kernel = found[1]
    assert kernel.kernel is not None and kernel.kernel.name == "scale"
    assert (kernel.grid, kernel.block, kernel.shared_bytes) == ((1, 2, 3), (4, 5, 6), 7)
    assert (kernel.parameters, kernel.attributes) == (first, ((5, b"\1"),))
    assert [process.events[node.event] for node in found if node.event is not None] == [0, 0]
    assert found[2].event != found[6].event
    assert found[4].memset == {"destination": BASE, "pitch": 0, "width": 4, "height": 1, "value": 5, "element_size": 4}
    assert found[5].copy == copy_bytes(BASE, BASE + 64)
    assert found[8].parameters == struct.pack("<QI", 5, 6)
    assert found[3].child is not None
    child = list(view.nodes(found[3].child))
    assert [node.type for node in child] == [NodeType.KERNEL, NodeType.EVENT_RECORD]
    assert child[0].parameters == struct.pack("<QI", 3, 4) and child[1].event == found[6].event


def test_every_row_is_shown_once() -> None:
    for seed in range(40):
        for process in varied_capture(random.Random(seed)).processes:
            view = GraphView(process)
            nodes = [node for body_index in range(len(process.bodies)) for node in view.nodes(body_index)]
            blocks = b"".join(n.parameters + bytes(-len(n.parameters) % 16) for n in nodes if n.parameters is not None)
            assert blocks == process.parameters.tobytes()
            assert [node.event for node in nodes if node.event is not None] == process.event_nodes.tolist()
            assert [node.child for node in nodes if node.child is not None] == process.children.tolist()
            assert b"".join(node.copy for node in nodes if node.copy is not None) == process.copies.tobytes()


def test_pointers_are_listed_with_what_they_point_to(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path)
    spool.device()
    spool.device(1, BASE + (1 << 42))
    spool.allocation(BASE, 100, 0, 0)
    spool.allocation(BASE + (1 << 42), 100, 0, 0, device=1)
    spool.image(0x10, b"SIMULATED IMAGE " * 4, bytes(32))
    spool.kernel(0x77, 0x10, "scale", [(0, 40)])
    words = struct.pack("<5Q", BASE + 8, 0, BASE + (1 << 42) + 4, BASE + 600, 0x7F0000000008)
    spool.range(3, 0x7F0000000000, 64)
    spool.graph(0x90, body([empty_node(), kernel_node(0x77, words), memset_node(0xDEAD0000)]))
    process = pack(spool.write())[0].processes[0]
    table = find_pointers(process, process.ranges)
    assert [
        (int(row["node"]), int(row["offset"]), Target(int(row["kind"])).name, int(row["delta"])) for row in table
    ] == [
        (1, 0, "ALLOCATION", 8),
        (1, 16, "ALLOCATION", 4),
        (1, 24, "DANGLING", 0),
        (1, 32, "RANGE", 8),
        (2, 0, "UNKNOWN", 0),
    ]
    assert table["target"][:2].tolist() == [0, 1]
