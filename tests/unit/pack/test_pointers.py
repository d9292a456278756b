"""Which memory the nodes of a graph point to, and what that makes of the graph."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from helpers.packing import BASE, GRAPH, SCRATCH, one_graph, packed, scale, start
from helpers.spool_writer import body, child_node, copy_bytes, copy_node, empty_node, kernel_node, memset_node

from foundry.findings import DANGLING_POINTER, DANGLING_WORD, FOREIGN_MEMORY, HOST_COPY, SCRATCH_MEMORY


def test_pointers_to_main_and_graph_memory_become_references(tmp_path: Path) -> None:
    graph = one_graph(start(tmp_path / "s"), scale(BASE + 8), scale(GRAPH + 4095))
    assert graph.restorable and graph.references == (0, 2) and graph.dangling_words == 0


def test_a_pointer_to_scratch_memory_is_named_with_its_place(tmp_path: Path) -> None:
    graph = one_graph(start(tmp_path / "s"), scale(BASE), scale(SCRATCH + 16), scale(SCRATCH))
    assert graph.reason_code == SCRATCH_MEMORY
    assert graph.reason == (
        "node 1, `scale`, parameter byte 0 points to scratch memory (allocation 0 of 4096 bytes) (and 1 more)"
    )
    assert graph.references == (0,)


@pytest.mark.parametrize(("kind", "what"), [(1, "pinned"), (2, "registered"), (3, "managed"), (4, "mapped itself"),
    (5, "own pool"), (6, "another process"), (7, "global `table`"), (8, "outside")])  # fmt: skip
def test_a_pointer_into_foreign_memory_is_named(tmp_path: Path, kind: int, what: str) -> None:
    spool = start(tmp_path / "s")
    spool.range(kind, 0x7F0000000000, 64, 0x10, "table" if kind == 7 else "")
    graph = one_graph(spool, scale(0x7F000000003F))
    assert graph.reason_code == FOREIGN_MEMORY
    assert what in graph.reason and "node 0, `scale`" in graph.reason


def test_foreign_memory_counts_only_while_it_stands(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.range(1, 0x7F0000000000, 64)
    spool.range_gone(1, 0x7F0000000000)
    assert one_graph(spool, scale(0x7F0000000000), scale(0x7F0000000040)).restorable


def test_overlapping_foreign_memory_is_all_seen(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.range(2, 0x7F0000000000, 1 << 20)
    spool.range(1, 0x7F0000001000, 64)
    assert not one_graph(spool, scale(0x7F00000F0000)).restorable


def test_stale_words_are_noted_and_do_no_harm(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.free(BASE)
    spool.graph(0x90, body([scale(BASE + 64), scale(GRAPH + 4096)]))
    process, codes = packed(spool)
    assert process.graphs[0].restorable and process.graphs[0].dangling_words == 2
    assert process.graphs[0].references == ()
    assert codes == [DANGLING_WORD]


def test_memory_counts_as_it_stood_when_the_graph_was_made(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.graph(0x90, body([scale(BASE)]), ("set", "before"))
    spool.free(BASE)
    spool.allocation(BASE, 600, 0, 1)
    spool.graph(0x91, body([scale(BASE)]), ("set", "after"))
    process, _ = packed(spool)
    before, after = (process.allocations[graph.references[0]] for graph in process.graphs)
    assert (before["size"], after["size"]) == (4096, 600)


def test_only_whole_aligned_words_of_a_block_are_pointers(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.kernel(0x78, 0x10, "odd", [(0, 4), (4, 8)])
    unaligned = kernel_node(0x78, struct.pack("<IQ", 7, SCRATCH))
    assert one_graph(spool, unaligned).restorable


def test_memsets_and_copies_are_audited_too(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    good = (memset_node(GRAPH + 8), copy_node(copy_bytes(BASE, GRAPH, 64, 2, 4)))
    assert one_graph(spool, *good).references == (0, 2)
    for index, (node, code, what) in enumerate(
        [
            (memset_node(SCRATCH), SCRATCH_MEMORY, "node 0, memset, points to scratch"),
            (memset_node(BASE + 8192), DANGLING_POINTER, "freed, or never"),
            (memset_node(0x12345000), FOREIGN_MEMORY, "not seen"),
            (copy_node(copy_bytes(SCRATCH, BASE)), SCRATCH_MEMORY, "source of copy"),
            (copy_node(copy_bytes(BASE, SCRATCH)), SCRATCH_MEMORY, "destination of copy"),
            (copy_node(copy_bytes(0x5500, BASE, 64, 1)), HOST_COPY, "its source is host memory"),
            (copy_node(copy_bytes(BASE, 0x5500, 64, 2, 3)), HOST_COPY, "its destination is an array"),
        ]
    ):
        graph = one_graph(start(tmp_path / f"{index}"), node)
        assert graph.reason_code == code and what in graph.reason


def test_words_of_child_graphs_are_audited_with_their_place(tmp_path: Path) -> None:
    graph = one_graph(start(tmp_path / "s"), empty_node(), child_node(body([scale(SCRATCH)])))
    assert graph.reason.startswith("node 0 of child graph 1, `scale`")


def test_no_host_pointer_survives(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.range(1, 0x7F1122330000, 64)
    spool.range(3, 0x7F4455660000, 64)
    spool.range(3, 0x7F4455770000, 64)
    copy = copy_node(copy_bytes(0x7FAABBCCDD00, BASE, 64, 1, 2, 0x7FAABBCCDD00))
    spool.graph(0x90, body([copy, scale(0x7F4455660000), scale(0x7F1122330000)]))
    process, _ = packed(spool)
    assert [item.address for item in process.ranges] == [0, 0x7F4455660000, 0]
    assert b"\xdd\xcc\xbb\xaa\x7f" not in process.copies.tobytes()
