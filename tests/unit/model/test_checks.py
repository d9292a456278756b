"""A capture that contradicts itself is found out, each contradiction by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.spool_writer import SpoolWriter, body, child_node, event_node, kernel_node, memset_node

from foundry.model import NONE, Capture, File, Group, Library, LibraryPlace, Process
from foundry.model.checks import UnsoundError, check_capture
from foundry.pack import pack

BASE, ARENA = 0x400000000000, 1 << 38


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    spool = SpoolWriter(tmp_path)
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.allocation(BASE, 4096)
    spool.allocation(BASE + 2 * ARENA, 64, 2)
    spool.range(7, 0x5000, 8, 0x10, "table")
    spool.image(0x10, b"SIMULATED IMAGE " * 4, bytes(32))
    spool.kernel(0x77, 0x10, "scale", [(0, 8)])
    spool.event(0xE0)
    inner = body([kernel_node(0x77, BASE.to_bytes(8, "little"))])
    nodes = [memset_node(BASE), child_node(inner), event_node(0xE0), kernel_node(0x77, bytes(8), attributes=[(5, b"")])]
    spool.graph(0x90, body(nodes), ("set", "key"), 0xC0)
    spool.event_gone(0xE0)
    spool.graph(0x91, inner, ("set", "other"), 0xC0)
    spool.contents(BASE + 2 * ARENA, b"bytes")
    found, _ = pack(spool.write())
    assert all(graph.restorable for graph in found.processes[0].graphs)
    check_capture(found)
    return found


def edited(table: Any, row: int, **values: int) -> Any:
    changed = table.copy()
    for name, value in values.items():
        changed[name][row] = value
    return changed


def with_group(process: Process, index: int, **tables: Any) -> Process:
    groups = list(process.groups)
    groups[index] = replace(groups[index], **tables)
    return replace(process, groups=tuple(groups))


def with_first(process: Process, name: str, **fields: Any) -> Process:
    items = list(getattr(process, name))
    items[0] = replace(items[0], **fields)
    return replace(process, **{name: tuple(items)})


Change = Callable[[Process], Process]

CHANGES: dict[str, tuple[Change, str]] = {
    "role": (lambda p: replace(p, role="a/b"), "role"),
    "role of dots": (lambda p: replace(p, role=".."), "role"),
    "devices": (lambda p: replace(p, devices=p.devices * 2), "same ordinal"),
    "range": (lambda p: with_first(p, "devices", base=BASE + 1), "range is not one"),
    "range without size": (lambda p: with_first(p, "devices", arena_size=0), "range is not one"),
    "allocation": (lambda p: replace(p, allocations=edited(p.allocations, 0, arena=1)), "outside its arena"),
    "allocation of nothing": (lambda p: replace(p, allocations=edited(p.allocations, 0, size=0)), "outside"),
    "allocation past the end": (
        lambda p: replace(p, allocations=edited(p.allocations, 0, taken=ARENA + 1)),
        "outside its arena",
    ),
    "foreign range": (lambda p: with_first(p, "ranges", image=9), "a range refers"),
    "contents": (lambda p: with_first(p, "contents", blob=9), "contents refers"),
    "contents' size": (lambda p: with_first(p, "contents", size=9), "another size"),
    "image": (lambda p: with_first(p, "images", blob=9), "an image refers"),
    "image's context": (lambda p: with_first(p, "images", context=9), "an image refers"),
    "kernel": (lambda p: with_first(p, "kernels", image=9), "the kernel `scale` refers"),
    "body": (lambda p: replace(p, bodies=np.array([1, 0, 7], np.uint32)), "a body refers"),
    "launches": (lambda p: replace(p, launches=p.launches[1:]), "3 KERNEL nodes have 2 rows"),
    "memsets": (lambda p: replace(p, memsets=p.memsets[:0]), "1 MEMSET nodes have 0 rows"),
    "events": (lambda p: replace(p, event_nodes=p.event_nodes[:0]), "1 EVENT_RECORD nodes have 0 rows"),
    "copies": (lambda p: replace(p, copies=np.zeros(7, np.uint8)), "copies are cut"),
    "parameters": (lambda p: replace(p, parameters=p.parameters[:-16]), "parameters do not fit"),
    "unknown event": (lambda p: replace(p, event_nodes=np.array([4], np.uint32)), "an event node refers"),
    "node's kernel": (lambda p: with_group(p, 1, nodes=edited(p.groups[1].nodes, 3, kernel=9)), "group 1 refers"),
    "node's child": (lambda p: with_group(p, 1, nodes=edited(p.groups[1].nodes, 1, child=1)), "group 1 refers"),
    "node's reason": (lambda p: with_group(p, 1, nodes=edited(p.groups[1].nodes, 3, reason=0)), "rows|refers"),
    "memset's kernel": (lambda p: with_group(p, 1, nodes=edited(p.groups[1].nodes, 0, kernel=0)), "takes none"),
    "memset's parameters": (
        lambda p: with_group(p, 1, nodes=edited(p.groups[1].nodes, 0, parameter_size=8)),
        "takes none",
    ),
    "edge": (lambda p: with_group(p, 1, edges=edited(p.groups[1].edges, 2, end=4)), "an edge refers"),
    "edges' order": (lambda p: with_group(p, 1, edges=p.groups[1].edges[::-1]), "out of order"),
    "edge twice": (lambda p: with_group(p, 1, edges=p.groups[1].edges[[0, 0, 1, 2]]), "out of order"),
    "an order of too few": (lambda p: with_group(p, 1, order=np.array([0, 1], np.uint32)), "dependencies out of order"),
    "an order of others": (
        lambda p: with_group(p, 1, order=np.array([0, 1, 9], np.uint32)),
        "dependencies out of order",
    ),
    "an order across nodes": (lambda p: with_group(p, 1, order=np.array([1, 0, 2], np.uint32)), "dependencies out of"),
    "the order of the edges": (lambda p: with_group(p, 1, order=np.array([0, 1, 2], np.uint32)), "dependencies out of"),
    "children": (lambda p: replace(p, children=np.array([2], np.uint32)), "not the child that its parent names"),
    "tops": (lambda p: with_first(p, "graphs", body=1), "belongs to no graph"),
    "graph too few": (lambda p: replace(p, graphs=p.graphs[:1]), "belongs to no graph"),
    "graph's context": (lambda p: with_first(p, "graphs", context=9), "a graph refers"),
    "references": (lambda p: with_first(p, "graphs", references=(9,)), "a graph refers"),
    "references' order": (lambda p: with_first(p, "graphs", references=(1, 0)), "not in order"),
    "reason": (lambda p: with_first(p, "graphs", reason="because"), "no code"),
    "name": (lambda p: with_first(p, "graphs", key="other"), "same name"),
    "restorable kernel": (lambda p: with_first(p, "kernels", image=NONE), "called restorable, but node \\d: the image"),
    "restorable event": (lambda p: replace(p, event_nodes=np.array([NONE], np.uint32)), "unknown event"),
    "restorable layout": (lambda p: with_first(p, "kernels", parameters=((0, 4),)), "another size"),
    "library's name": (lambda p: replace(p, libraries=(Library("a/b.so", ""),)), "not a file name"),
    "library's build id": (lambda p: replace(p, libraries=(Library("b.so", "xyz"),)), "build id of the library `b.so`"),
    "libraries' order": (lambda p: replace(p, libraries=(Library("b", ""), Library("a", ""))), "not in order"),
    "library twice": (lambda p: replace(p, libraries=(Library("a", "00"),) * 2), "not in order"),
    "restorable device": (lambda p: with_first(p, "graphs", device=3), "no reserved range"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_contradiction_is_named(capture: Capture, name: str) -> None:
    change, words = CHANGES[name]
    process = change(capture.processes[0])
    with pytest.raises(UnsoundError, match=words):
        check_capture(replace(capture, processes=(process,)))


def test_two_processes_of_one_role_are_a_contradiction(capture: Capture) -> None:
    with pytest.raises(UnsoundError, match="same role"):
        check_capture(replace(capture, processes=capture.processes * 2))


@pytest.mark.parametrize(
    "file",
    [
        File("triton", path, 0o600, 0)
        for path in ("", "/x", "../x", "a/../x", "a//x", "a/.", "a\\x", "a\0x")
    ]
    + [File("..", "x", 0o600, 0), File("a/b", "x", 0o600, 0), File("a", "x", 0o1777, 0), File("a", "x", 0o600, 99)],
)  # fmt: skip
def test_files_that_could_escape_are_refused(file: File) -> None:
    with pytest.raises(UnsoundError):
        check_capture(Capture((), (b"",), files=(file,)))


PLACE = LibraryPlace("a.so", "00ff", 0, 4, 0)


def test_libraries_in_order_are_sound(capture: Capture) -> None:
    listed = (
        Library("a", "", "", ""),
        Library("a", "00", "p", "1"),
        Library("a", "00", "p", "2"),
        Library("b", "ff" * 64),
    )
    check_capture(replace(capture, processes=(replace(capture.processes[0], libraries=listed),)))


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (replace(PLACE, name=".."), "not a file name"),
        (replace(PLACE, build_id=""), "build id"),
        (replace(PLACE, build_id="0"), "build id"),
        (replace(PLACE, size=0, architecture=90), "past the limit"),
        (replace(PLACE, size=(1 << 30) + 1, architecture=90), "past the limit"),
        (replace(PLACE, offset=(1 << 53) - 3), "byte 9007199254740989"),
        (replace(PLACE, architecture=10_000), "no architecture"),
        (replace(PLACE, size=5), "5 bytes there are 4 here"),
    ],
)
def test_a_place_in_a_library_that_cannot_be_is_refused(place: LibraryPlace, words: str) -> None:
    check_capture(Capture((), (b"four",), outside={0: PLACE}))
    with pytest.raises(UnsoundError, match=words):
        check_capture(Capture((), (b"four",), outside={0: place}))


def test_a_place_of_no_blob_or_an_empty_one_is_refused() -> None:
    with pytest.raises(UnsoundError, match="refers to something that is not there"):
        check_capture(Capture((), (b"four",), outside={1: PLACE}))
    with pytest.raises(UnsoundError, match="size is past the limit"):
        check_capture(Capture((), (b"",), outside={0: replace(PLACE, architecture=90)}))


def test_a_small_group_named_often_is_bounded_before_anything_is_laid_out(capture: Capture) -> None:
    process = capture.processes[0]
    nodes = np.repeat(process.groups[1].nodes[:1], 1 << 20)
    nodes["type"] = 5
    wide = Group(nodes, process.groups[0].edges[:0])
    bodies = np.zeros(1 << 5, np.uint32)
    with pytest.raises(UnsoundError, match="nodes are past the limit"):
        check_capture(replace(capture, processes=(replace(process, groups=(wide,), bodies=bodies),)))
