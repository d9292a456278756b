from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.differing import BASE, OTHER_BASE, examined, sample
from helpers.proofs import NOTHING_PROVEN
from helpers.spool_writer import SpoolWriter, body, empty_node
from helpers.varied import varied_capture

from foundry.diff import compare, scope
from foundry.diff.report import Change, Kind, Report, Strength
from foundry.model import (
    Capture,
    Contents,
    Device,
    File,
    Graph,
    Image,
    Kernel,
    Library,
    LibraryPlace,
    NodeType,
    Phase,
    Process,
    Range,
)
from foundry.model.tables import ALLOCATION, EDGE, LAUNCH, MEMSET, NODE, padded_sizes, starts
from foundry.model.views import parameter_sizes
from foundry.pack import pack


@pytest.fixture(scope="module")
def capture() -> Capture:
    return sample()


def changes(report: Report) -> list[Change]:
    return [change for kind in Kind for change in report.strongest_first(kind)]


@pytest.mark.parametrize("seed", range(40))
def test_a_capture_is_equal_to_itself(seed: int) -> None:
    report = examined(varied_capture(random.Random(seed)), varied_capture(random.Random(seed)))
    assert (report.verdict, changes(report)) == (Strength.NOTE, [])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(0, 200, 2))
def test_any_two_captures_can_be_compared(seed: int) -> None:
    """Numbers of things and orders differ in all ways; what is there must be named without fault, both ways."""
    pair = [varied_capture(random.Random(seed + number)) for number in range(2)]
    there, back = examined(*pair), examined(*reversed(pair))
    assert there.verdict == back.verdict == Strength.DIFFERENT
    for change in [*changes(there), *changes(back)]:
        assert change.before != change.after
    for kind in (Kind.PROCESSES, Kind.FINGERPRINT, Kind.GRAPHS):
        assert sum(there.counts[kind].values()) == sum(back.counts[kind].values())


def one_process(capture: Capture, **values: Any) -> Capture:
    return replace(capture, processes=(replace(capture.processes[0], **values),))


def first_of(capture: Capture, things: str, **values: Any) -> Capture:
    """The capture with fields of the first thing in a list of its process replaced."""
    first, *others = getattr(capture.processes[0], things)
    return one_process(capture, **{things: (replace(first, **values), *others)})


def with_another(capture: Capture, things: str, **values: Any) -> Capture:
    """The capture with another thing in a list of its process."""
    listed = getattr(capture.processes[0], things)
    return one_process(capture, **{things: (*listed, replace(listed[0], **values))})


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, dict):
        return {**value, "another": 1 if value and isinstance(next(iter(value.values())), int) else "1"}
    if isinstance(value, np.ndarray):
        changed = value.copy()
        changed.reshape(-1).view(np.uint8)[0] ^= 1
        return changed
    assert isinstance(value, tuple)
    return value[:-1]


SPECIAL: dict[tuple[type, str], Callable[[Capture], Capture]] = {
    (Capture, "processes"): lambda capture: replace(capture, processes=()),
    (Capture, "outside"): lambda capture: replace(capture, outside={0: LibraryPlace("libx.so", "ab", 0, 64, 0)}),
    (Capture, "blobs"): lambda capture: replace(capture, blobs=(b"other code", *capture.blobs[1:])),
    (Process, "contexts"): lambda capture: one_process(capture, contexts=capture.processes[0].contexts[:1]),
    (Process, "contents"): lambda capture: one_process(capture, contents=()),
    (Process, "node_reasons"): lambda capture: one_process(capture, node_reasons=("another",)),
    (Process, "events"): lambda capture: one_process(capture, events=(3,)),
    (Process, "attribute_sets"): lambda capture: one_process(
        capture, attribute_sets=tuple(((8, b"\x07"),) for _ in capture.processes[0].attribute_sets)
    ),
    (Process, "groups"): lambda capture: with_group(capture, "nodes", lambda nodes: nodes[:-1]),
    (Process, "bodies"): lambda capture: one_process(
        with_another(capture, "groups", nodes=capture.processes[0].groups[0].nodes[:-1]),
        bodies=np.array([len(capture.processes[0].groups), *capture.processes[0].bodies[1:]], np.uint32),
    ),
    (Process, "images"): lambda capture: with_another(capture, "images", instance=7),
    (Process, "kernels"): lambda capture: with_another(capture, "kernels", name="another"),
    (Process, "children"): lambda capture: one_process(capture, children=np.zeros(1, np.uint32)),
    (Process, "allocations"): lambda capture: with_column(capture, "allocations", "size"),
    (Process, "parameters"): lambda capture: one_process(
        capture, parameters=flipped(capture.processes[0].parameters, 8)
    ),
    (Process, "copies"): lambda capture: one_process(capture, copies=flipped(capture.processes[0].copies, 176)),
    (Process, "proof"): lambda capture: one_process(capture, proof=NOTHING_PROVEN),
    (Image, "blob"): lambda capture: first_of(capture, "images", blob=1),
    (Image, "original"): lambda capture: one_process(
        capture, images=tuple(replace(image, original=0) for image in capture.processes[0].images)
    ),
    (Image, "context"): lambda capture: first_of(capture, "images", context=1),
    (Image, "options"): lambda capture: first_of(capture, "images", options=((1, 2),)),
    (Kernel, "image"): lambda capture: first_of(capture, "kernels", image=1),
    (Kernel, "attributes"): lambda capture: first_of(capture, "kernels", attributes=((8, 2048),)),
    (Graph, "context"): lambda capture: first_of(capture, "graphs", context=1),
    (Graph, "body"): lambda capture: first_of(capture, "graphs", body=1),
    (Range, "image"): lambda capture: first_of(
        capture, "ranges", image=0 if capture.processes[0].ranges[0].image else 1
    ),
    (File, "blob"): lambda capture: replace(capture, files=(replace(capture.files[0], blob=0),)),
    (Device, "flags"): lambda capture: first_of(capture, "devices", flags=3),
}
PLACES = {
    Capture: "", Process: "", Device: "devices", Image: "images", Kernel: "kernels", Graph: "graphs", Range: "ranges",
    Contents: "contents", Phase: "phases", Library: "libraries", File: "files",
}  # fmt: skip


def flipped(array: Any, index: int) -> Any:
    changed = array.copy()
    changed[index] ^= 1
    return changed


def with_column(capture: Capture, table: str, column: str) -> Capture:
    changed = getattr(capture.processes[0], table).copy()
    cells = changed[column].reshape(len(changed), -1)
    cells[0, 0] ^= 1
    changed[column] = cells.reshape(changed[column].shape)
    return one_process(capture, **{table: changed})


def with_group(capture: Capture, name: str, change: Callable[[Any], Any]) -> Capture:
    groups = capture.processes[0].groups
    return one_process(capture, groups=(replace(groups[0], **{name: change(getattr(groups[0], name))}), *groups[1:]))


def mutated(capture: Capture, kind: type, name: str) -> Capture:
    special = SPECIAL.get((kind, name))
    if special:
        return special(capture)
    if kind is Capture:
        return replace(capture, **{name: other(getattr(capture, name))})
    if kind is File:
        return replace(capture, files=(replace(capture.files[0], **{name: other(getattr(capture.files[0], name))}),))
    if kind is Process:
        return one_process(capture, **{name: other(getattr(capture.processes[0], name))})
    things = getattr(capture.processes[0], PLACES[kind])
    return first_of(capture, PLACES[kind], **{name: other(getattr(things[0], name))})


def told_fields() -> list[tuple[type, str, Kind]]:
    return [(kind, name, where) for kind, names in scope.KINDS.items() for name, where in names.items()
            if kind in PLACES]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "where"), [pytest.param(*each, id=f"{each[0].__name__}.{each[1]}") for each in told_fields()]
)
def test_each_field_that_changes_is_told_where_it_belongs(capture: Capture, kind: type, name: str, where: Kind) -> None:
    report = examined(capture, mutated(capture, kind, name))
    assert where in {change.kind for change in changes(report)}
    if where == Kind.NOTES:
        assert report.verdict == Strength.NOTE
    elif (kind, name) == (Device, "base"):
        assert report.verdict >= Strength.RELOCATION
    else:
        assert report.verdict == Strength.DIFFERENT
        assert Strength.DIFFERENT in report.counts[where]


@pytest.mark.parametrize("kind", scope.KINDS, ids=lambda kind: kind.__name__)
def test_each_field_is_told_or_has_a_reason_why_not(kind: type) -> None:
    left_out = scope.NOT_TOLD.get(kind, {})
    assert sorted([*scope.KINDS[kind], *left_out]) == sorted(field.name for field in fields(kind))
    assert all(left_out.values())


TABLES = {
    "allocations": (ALLOCATION, {Kind.MEMORY}),
    "launches": (LAUNCH, {Kind.NODES}),
    "memsets": (MEMSET, {Kind.NODES}),
}


@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table, (dtype, _) in TABLES.items() for column in dtype.names or ()]
)
def test_each_column_that_changes_is_told(capture: Capture, table: str, column: str) -> None:
    report = examined(capture, with_column(capture, table, column))
    found = {change.kind for change in changes(report)}
    assert TABLES[table][1] <= found
    moved = (table, column) == ("allocations", "address")
    assert report.verdict == (Strength.RELOCATION if moved else Strength.DIFFERENT)


@pytest.mark.parametrize("column", NODE.names or ())
def test_each_column_of_nodes_that_changes_is_told(capture: Capture, column: str) -> None:
    def change(nodes: Any) -> Any:
        copy = nodes.copy()
        if column == "type":
            copy[column][-1] = NodeType.MEM_ALLOC  # which has no row, as the empty node that it was
            return copy
        copy[column][0] = {"kernel": 1, "attributes": 1, "context": 1}.get(column, copy[column][0] ^ 4)
        if column == "reason":
            copy[column][0] = 0
        if column == "child":
            copy[column][0] = 5
        return copy

    report = examined(capture, with_group(capture, "nodes", change))
    if column == "child":
        assert report.verdict == Strength.NOTE  # which body it has is said by the bodies
    else:
        assert {change.kind for change in changes(report)} & {Kind.NODES, Kind.EDGES}


@pytest.mark.parametrize("column", EDGE.names or ())
def test_each_column_of_edges_that_changes_is_told(capture: Capture, column: str) -> None:
    def change(edges: Any) -> Any:
        copy = edges.copy()
        copy[column][-1] += 1
        return copy

    report = examined(capture, with_group(capture, "edges", change))
    assert {change.kind for change in changes(report)} == {Kind.EDGES}


def test_another_order_of_dependencies_is_noted(tmp_path: Path) -> None:
    captures = []
    for name, edges in (("a", [(0, 2, 0), (1, 2, 0)]), ("b", [(1, 2, 0), (0, 2, 0)])):
        spool = SpoolWriter(tmp_path / name)
        for graph in (0x90, 0x91):
            spool.graph(graph, body([empty_node()] * 3, edges))
        spool.write()
        captures.append(pack(tmp_path / name)[0])
    report = examined(captures[0], captures[1])
    assert [change.what for change in changes(report)] == ["order of the dependencies of node 2"]
    assert [(change.before, change.after) for change in changes(report)] == [("0, 1", "1, 0")]
    assert report.verdict == Strength.NOTE
    assert [str(one) for one in compare(*captures)] != []


@pytest.mark.parametrize("index", range(0, 200, 4))
def test_each_field_of_a_copy_that_changes_is_told(capture: Capture, index: int) -> None:
    report = examined(capture, one_process(capture, copies=flipped(capture.processes[0].copies, index)))
    assert {change.kind for change in changes(report)} == {Kind.NODES}
    assert report.verdict == Strength.DIFFERENT
    assert all(change.before != change.after for change in changes(report)), "both sides are worded alike"


def test_each_parameter_byte_that_changes_is_told(capture: Capture) -> None:
    """Bytes 12 to 15 of each block lie in no parameter: the kernel cannot read them."""
    process = capture.processes[0]
    sizes = parameter_sizes(process)
    first = starts(padded_sizes(sizes))
    for start, size in zip(first.tolist(), sizes.tolist(), strict=False):
        for at in range(size):
            report = examined(capture, one_process(capture, parameters=flipped(process.parameters, start + at)))
            if 12 <= at < 16:
                assert (report.verdict, report.words) == (Strength.NOISE, {"padding": 1})
                continue
            assert (report.verdict, report.words) == (Strength.DIFFERENT, {"different": 1})
            (change,) = changes(report)
            assert change.kind == Kind.NODES
            assert f"byte {at // 8 * 8 if size > 16 or at < 8 else 8}" in change.what


class TestRelocation:
    def test_all_arenas_elsewhere(self) -> None:
        report = examined(sample(BASE), sample(OTHER_BASE))
        assert report.verdict == Strength.RELOCATION
        assert report.words == {"relocated": 9}
        kinds = {change.kind: change.strength for change in changes(report)}
        assert kinds == {Kind.MEMORY: Strength.RELOCATION, Kind.NODES: Strength.RELOCATION}
        (base,) = (change for change in changes(report) if change.what == "address of the range")
        assert (base.before, base.after) == ("0x400000000000", "0x200000000000")

    def test_one_allocation_elsewhere_in_its_arena(self) -> None:
        before, after = moved(sample(), 1 << 20), sample()
        report = examined(before, after)
        assert report.verdict == Strength.RELOCATION
        assert any("place of allocation" in change.what for change in changes(report))

    def test_a_word_that_stays_behind_is_different(self) -> None:
        before, after = sample(BASE), sample(OTHER_BASE)
        words = after.processes[0].parameters.copy().view("<u8")
        words[0] += 8
        report = examined(before, one_process(after, parameters=words.view(np.uint8)))
        assert report.verdict == Strength.DIFFERENT
        (real,) = (change for change in changes(report) if change.strength == Strength.DIFFERENT)
        assert (real.before, real.after) == (
            "0x400000002000, main allocation 1",
            "0x200000002008, main allocation 1 + 0x8",
        )
        assert real.what == "`scale`: parameter 0, byte 0"
        assert real.where == "python-0: graph decode/8: node 0"

    def test_other_sizes_are_different(self) -> None:
        report = examined(sample(), sample(first_bytes=2048))
        (log,) = (change for change in changes(report) if change.kind == Kind.MEMORY)
        assert log.what == "allocation log, from allocation 0 on"
        assert log.before == (
            "main allocation 0 of device 0: 4,096 bytes at +0x0, step 0, thread 0, in the phase `warm-up`"
        )
        assert log.after == (
            "main allocation 0 of device 0: 2,048 bytes at +0x0, step 0, thread 0, in the phase `warm-up`"
        )

    @pytest.mark.parametrize(
        ("step", "near"),
        [(0, "in the phase `warm-up`"), (4, "before the graph `decode` `1`"), (9, "after the graph `decode` `1`")],
    )
    def test_allocations_are_named_by_what_is_near(self, step: int, near: str) -> None:
        before = sample()
        table = before.processes[0].allocations
        last = table[-1:].copy()
        last["born"] = step
        report = examined(before, one_process(before, allocations=np.concatenate([table, last])))
        (log,) = (change for change in changes(report) if "log" in change.what)
        assert (log.before, log.after.endswith(f", step {step}, thread 0, {near}")) == ("the log has ended", True)


def moved(capture: Capture, distance: int) -> Capture:
    """The capture with the last allocation elsewhere, and all that points there with it."""
    process = capture.processes[0]
    table = process.allocations.copy()
    row = len(table) - 1
    start, size = int(table["address"][row]), int(table["taken"][row])
    table["address"][row] += distance
    values = {"allocations": table}
    for name in ("parameters", "copies"):
        words = getattr(process, name).copy().view("<u8")
        words[(words >= start) & (words < start + size)] += np.uint64(distance)
        values[name] = words.view(np.uint8)
    memsets = process.memsets.copy()
    there = (memsets["destination"] >= start) & (memsets["destination"] < start + size)
    memsets["destination"][there] += np.uint64(distance)
    return one_process(capture, memsets=memsets, **values)


class TestKernels:
    def test_code_that_changed_is_told_once(self, capture: Capture) -> None:
        """The key is a digest of the code, so both differ; the kernels' names tell that it is the same image."""
        image = replace(capture.processes[0].images[0], key=b"\7" * 32, blob=len(capture.blobs))
        after = replace(
            one_process(capture, images=(image, *capture.processes[0].images[1:])), blobs=(*capture.blobs, b"new" * 9)
        )
        report = examined(capture, after)
        told = [change for change in changes(report) if change.strength == Strength.DIFFERENT]
        assert [(change.kind, change.what) for change in told if change.kind != Kind.MEMORY] == [(Kind.KERNELS, "code")]
        assert "with `scale`" in told[-1].where

    def test_a_kernel_that_is_gone(self, capture: Capture) -> None:
        report = examined(with_another(capture, "kernels", name="_ZN2at6native9mix_arrayIdEEvPT_i"), capture)
        assert ("kernel", "`mix_array<double>`", "none") in {
            (change.what, change.before, change.after) for change in changes(report)
        }


def test_graphs_that_came_and_went(capture: Capture) -> None:
    graphs = capture.processes[0].graphs
    report = examined(capture, one_process(capture, graphs=(graphs[0], replace(graphs[1], key="2"))))
    assert [(change.where, change.before, change.after) for change in changes(report)] == [
        ("python-0: graph decode/1", "10 nodes", "none"),
        ("python-0: graph decode/2", "none", "10 nodes"),
    ]


def test_nodes_in_the_middle_that_went(capture: Capture) -> None:
    def without(nodes: Any) -> Any:
        return np.delete(nodes, 4)

    after = with_group(capture, "nodes", without)
    process = after.processes[0]
    report = examined(
        capture,
        one_process(after, launches=process.launches[1:], parameters=process.parameters[32:]),
    )
    found = [change for change in changes(report) if change.kind == Kind.TOPOLOGIES]
    assert [(change.what, change.before, change.after) for change in found if "nodes" in change.what] == [
        ("nodes from 6 on", "`mix_array<float>` (of 8 nodes)", "nothing (of 7 nodes)"),
    ]


def test_graphs_that_share_a_topology_with_others() -> None:
    before = sample()
    process = before.processes[0]
    groups = (*process.groups, process.groups[int(process.bodies[0])])
    twice = replace(process.graphs[0], key="9")
    bodies = np.array([*process.bodies, process.bodies[0]], np.uint32)
    tables = {
        "launches": np.concatenate([process.launches, process.launches[:4]]),
        "parameters": np.concatenate([process.parameters, process.parameters[:112]]),
        "memsets": np.concatenate([process.memsets, process.memsets[:1]]),
        "copies": np.concatenate([process.copies, process.copies[:200]]),
        "event_nodes": np.concatenate([process.event_nodes, process.event_nodes[:1]]),
    }
    graphs = (*process.graphs, replace(twice, body=len(bodies) - 1))
    shared = one_process(before, graphs=graphs, bodies=bodies, **tables)
    bodies = bodies.copy()
    bodies[-1] = len(groups) - 1
    report = examined(shared, one_process(before, graphs=graphs, bodies=bodies, groups=groups, **tables))
    (found,) = (change for change in changes(report) if change.strength == Strength.DIFFERENT)
    assert (found.where, found.what) == ("python-0: graph decode/9", "shares a topology with")
    assert (found.before, found.after) == ("decode/8", "no graph before it")


def test_changes_past_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foundry.diff.report.MOST_KEPT", 2)
    report = examined(sample(), sample(words=(1 << 40, 1 << 41), constant=9))
    assert report.counts[Kind.NODES] == {Strength.DIFFERENT: 6}
    assert len(report.changes[Kind.NODES]) == 2
