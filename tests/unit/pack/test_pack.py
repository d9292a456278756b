"""What a process did, and what the packer makes of it."""

from __future__ import annotations

import hashlib
import random
import struct
from pathlib import Path

import pytest
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

from foundry import archive
from foundry.errors import SpoolError
from foundry.findings import (
    CONTEXT_MIXED,
    DANGLING_POINTER,
    DANGLING_WORD,
    DEVICE_UNKNOWN,
    EVENT_UNKNOWN,
    EXEC_CHANGED,
    FOREIGN_MEMORY,
    HOST_COPY,
    IMAGE_KEPT_WHOLE,
    IMAGE_NOT_LINKED,
    KERNEL_UNKNOWN,
    LABEL_REPEATED,
    NODE_UNSUPPORTED,
    PARAMETER_LAYOUT,
    SCRATCH_MEMORY,
    SPOOL_BLOB_MISSING,
    SPOOL_TORN_TAIL,
)
from foundry.model import NONE, Capture, Graph, Process
from foundry.pack import pack

BASE, ARENA = 0x400000000000, 1 << 38
SCRATCH, GRAPH = BASE + ARENA, BASE + 2 * ARENA
IMAGE = b"SIMULATED IMAGE " * 4
FATBINS = Path(__file__).parents[2] / "data" / "fatbins"


def start(session: Path, role: str = "python-0") -> SpoolWriter:
    """A process with a device, memory in each arena, an image and a kernel of one pointer and one int."""
    spool = SpoolWriter(session, role)
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.allocation(BASE, 4096, 0, 0)
    spool.allocation(SCRATCH, 4096, 1, 0)
    spool.allocation(GRAPH, 4096, 2, 0)
    spool.image(0x10, IMAGE, bytes(32))
    spool.kernel(0x77, 0x10, "scale", [(0, 8), (8, 4)])
    return spool


def scale(address: int, kernel: int = 0x77, **options: object) -> bytes:
    return kernel_node(kernel, struct.pack("<QI", address, 3), **options)  # type: ignore[arg-type]


def packed(spool: SpoolWriter, **options: bool) -> tuple[Process, list[str]]:
    capture, findings = pack(spool.write(), **options)
    archive.write(capture, spool.folder.parent.with_suffix(".fdry"), force=True)
    return capture.processes[0], [finding.code for finding in findings if not finding.code.startswith("spool-no")]


def one_graph(spool: SpoolWriter, *nodes: bytes, **options: int) -> Graph:
    spool.graph(0x90, body(nodes), **options)  # type: ignore[arg-type]
    return packed(spool)[0].graphs[0]


# Pointers


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


# Nodes, kernels, images


@pytest.mark.parametrize(
    ("node", "code", "what"),
    [
        (refused_node(3, "a host function"), NODE_UNSUPPORTED, "node 0: a host function"),
        (scale(BASE, 0x99), KERNEL_UNKNOWN, "node 0: the image of its kernel is not known"),
        (kernel_node(0x77, bytes(8)), PARAMETER_LAYOUT, "another size"),
        (event_node(0xE9), EVENT_UNKNOWN, "node 0: names an event that was not seen"),
        (scale(BASE, context=0xC5), CONTEXT_MIXED, "another context"),
        (child_node(body([empty_node(), refused_node(10, "memory of its own")])), NODE_UNSUPPORTED, "node 0 > 1: mem"),
    ],
)
def test_what_cannot_be_built_is_named(tmp_path: Path, node: bytes, code: str, what: str) -> None:
    spool = start(tmp_path / "s")
    spool.context(0xC5, primary=False)
    graph = one_graph(spool, node, context=0xC0)
    assert graph.reason_code == code and what in graph.reason


def test_parameters_that_overlap_are_no_layout(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.kernel(0x78, 0x10, "odd", [(0, 8), (4, 8)])
    assert one_graph(spool, scale(BASE, 0x78)).reason_code == PARAMETER_LAYOUT


def test_a_graph_on_a_device_without_a_range_is_not_restorable(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.device(1, 0, 0)
    assert one_graph(spool, empty_node(), device=1).reason_code == DEVICE_UNKNOWN


def test_an_exec_that_was_changed_is_given_up(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.graph(0x90, body([scale(BASE)]))
    spool.exec_gone(0x90)
    spool.graph(0x90, body([scale(BASE)]))
    spool.exec_changed(0x90, "cuGraphExecUpdate")
    process, codes = packed(spool)
    assert [graph.reason_code for graph in process.graphs] == ["", EXEC_CHANGED]
    assert codes == [EXEC_CHANGED]


def test_a_reused_handle_is_another_kernel(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.graph(0x90, body([scale(BASE)]), ("s", "1"))
    spool.image_gone(0x10)
    spool.image(0x10, IMAGE[::-1], bytes(range(32)))
    spool.kernel(0x77, 0x10, "other", [(0, 8), (8, 4)])
    spool.graph(0x91, body([scale(BASE)]), ("s", "2"))
    process, _ = packed(spool)
    assert [kernel.name for kernel in process.kernels] == ["scale", "other"]
    assert [int(group.nodes["kernel"][0]) for group in process.groups] == [0, 1]
    assert [image.key for image in process.images] == [bytes(32), bytes(range(32))]


def test_a_kernel_whose_image_was_unloaded_before_it_was_described_is_unknown(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.image_gone(0x10)
    spool.kernel(0x78, 0x10, "late", [(0, 8), (8, 4)])
    assert one_graph(spool, scale(BASE, 0x78)).reason_code == KERNEL_UNKNOWN


def test_loads_of_one_key_are_counted_and_stored_once(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.image(0x11, IMAGE, bytes(32), blob=0)
    spool.kernel(0x78, 0x11, "scale", [(0, 8), (8, 4)])
    spool.graph(0x90, body([scale(BASE), scale(BASE, 0x78)]))
    capture, _ = pack(spool.write())
    assert [image.instance for image in capture.processes[0].images] == [0, 1]
    assert capture.blobs == (IMAGE,)


def test_only_images_in_use_are_kept_unless_all_are_asked_for(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.image(0x12, b"never in a graph", bytes(range(32)))
    spool.graph(0x90, body([scale(BASE)]))
    assert len(packed(spool)[0].images) == 1
    images = packed(spool, all_kernels=True)[0].images
    assert [image.in_graphs for image in images] == [True, False]


def test_changed_attributes_make_another_kernel(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.graph(0x90, body([scale(BASE)]))
    spool.kernel(0x77, 0x10, "scale", [(0, 8), (8, 4)], [(8, 99000)])
    spool.graph(0x91, body([scale(BASE)]))
    process, _ = packed(spool)
    assert [kernel.attributes for kernel in process.kernels] == [(), ((8, 99000),)]
    assert len(process.groups) == 2


def test_a_fatbin_gives_its_cubin_and_an_odd_one_stays_whole(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    whole = (FATBINS / "size.fatbin").read_bytes()
    odd = (FATBINS / "relocatable.fatbin").read_bytes()
    spool.image(0x20, whole, b"\1" * 32, form=2, provenance="/usr/lib/libtorch.so")
    spool.image(0x21, odd, b"\2" * 32, form=2)
    spool.kernel(0x80, 0x20, "scale", [(0, 8), (8, 4)])
    spool.kernel(0x81, 0x21, "scale", [(0, 8), (8, 4)])
    spool.graph(0x90, body([scale(BASE, 0x80), scale(BASE, 0x81)]))
    capture, findings = pack(spool.write())
    first, second = capture.processes[0].images
    assert capture.blobs[first.blob] == (FATBINS / "sm_90.cubin").read_bytes()
    assert (first.unpacked, first.provenance, first.size) == (True, "libtorch.so", len(whole))
    assert capture.blobs[second.blob] == odd and not second.unpacked
    assert [finding.text for finding in findings if finding.code == IMAGE_KEPT_WHOLE] == [
        f"fatbin of {len(odd)} bytes from `libkernels.so` is kept whole: the cubin for sm_90 is relocatable"
    ]


def test_ptx_is_loaded_from_its_linked_cubin(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.image(0x20, b".version 8.0 ptx text", b"\1" * 32, form=3)
    spool.linked(0x20, b"\x7fELF linked by the driver")
    spool.image(0x21, b".version 8.0 another", b"\2" * 32, form=3)
    spool.kernel(0x80, 0x20, "scale", [(0, 8), (8, 4)])
    spool.kernel(0x81, 0x21, "scale", [(0, 8), (8, 4)])
    spool.graph(0x90, body([scale(BASE, 0x80), scale(BASE, 0x81)]))
    capture, findings = pack(spool.write())
    first, second = capture.processes[0].images
    assert capture.blobs[first.blob] == b"\x7fELF linked by the driver" and first.linked
    assert capture.blobs[first.original] == b".version 8.0 ptx text"
    assert capture.blobs[second.blob] == b".version 8.0 another" and not second.linked
    assert [finding.code for finding in findings if "image" in finding.code] == [IMAGE_NOT_LINKED]


def test_a_missing_blob_costs_the_graphs_that_need_it(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.graph(0x90, body([scale(BASE)]))
    spool.graph(0x91, body([memset_node(BASE)]))
    spool.write()
    (spool.folder / "blob.0").unlink()
    process, codes = packed(spool)
    assert [graph.reason_code for graph in process.graphs] == [KERNEL_UNKNOWN, ""]
    assert codes == [SPOOL_BLOB_MISSING, KERNEL_UNKNOWN]


# Groups and members


def test_equal_topologies_are_one_group(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.graph(0x90, body([scale(BASE), scale(GRAPH)]))
    spool.graph(0x91, body([scale(BASE + 8, grid=(9, 1, 1), shared=5), scale(GRAPH)]))
    process, _ = packed(spool)
    assert len(process.groups) == 1 and process.bodies.tolist() == [0, 0]
    assert process.launches["grid"][:, 0].tolist() == [1, 1, 9, 1]


@pytest.mark.parametrize(
    "other",
    [
        body([scale(BASE), scale(GRAPH)], []),
        body([scale(BASE), scale(GRAPH)], [(0, 1, 1 << 16)]),
        body([scale(BASE), scale(GRAPH)], [(1, 0, 0)]),
        body([scale(BASE), scale(GRAPH, attributes=[(4, b"\2")])]),
        body([scale(BASE), scale(GRAPH, 0x78)]),
        body([scale(BASE), memset_node(GRAPH)]),
        body([scale(BASE), scale(GRAPH), empty_node()]),
    ],
)
def test_any_difference_of_topology_is_another_group(tmp_path: Path, other: bytes) -> None:
    spool = start(tmp_path / "s")
    spool.kernel(0x78, 0x10, "other", [(0, 8), (8, 4)])
    spool.graph(0x90, body([scale(BASE), scale(GRAPH)]))
    spool.graph(0x91, other)
    assert len(packed(spool)[0].groups) == 2


def test_the_order_in_which_edges_come_does_not_matter(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    nodes, edges = [empty_node()] * 4, [(0, 1, 0), (0, 2, 256), (1, 3, 0), (2, 3, 1 << 40)]
    spool.graph(0x90, body(nodes, edges))
    spool.graph(0x91, body(nodes, [*edges[::-1], edges[0]]))
    process, _ = packed(spool)
    assert len(process.groups) == 1
    assert process.groups[0].edges.tolist() == [(0, 1, 0), (1, 3, 0), (2, 3, 1 << 40), (0, 2, 256)]


def test_children_have_groups_and_bodies_of_their_own(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    inner = body([scale(BASE)])
    spool.graph(0x90, body([child_node(body([child_node(inner)])), child_node(inner), scale(GRAPH)]))
    spool.graph(0x91, inner)
    process, _ = packed(spool)
    assert process.bodies.tolist() == [2, 1, 0, 0, 0]
    assert process.children.tolist() == [1, 3, 2]
    assert [graph.body for graph in process.graphs] == [0, 4]


def test_events_keep_their_identity_across_graphs(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.event(0xE0, 1)
    spool.event(0xE1, 2)
    spool.graph(0x90, body([event_node(0xE1), event_node(0xE0)]))
    spool.graph(0x91, body([event_node(0xE1, record=False)]))
    spool.event(0xE1, 3)
    spool.graph(0x92, body([event_node(0xE1)]))
    process, _ = packed(spool)
    assert process.event_nodes.tolist() == [0, 1, 0, 2] and process.events == (2, 1, 3)


# Names and the course of things


def test_the_last_graph_of_a_label_wins(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.graph(0x90, body([scale(BASE)]), ("set", "key"))
    spool.graph(0x91, body([scale(GRAPH)]), ("set", "key"))
    process, codes = packed(spool)
    assert [graph.references for graph in process.graphs] == [(2,)] and codes == [LABEL_REPEATED]


def test_unlabelled_graphs_are_numbered_past_names_in_use(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    for number, label in enumerate([("", ""), ("set", "a"), ("", "#1"), ("", "")]):
        spool.graph(0x90 + number, body([empty_node()]), label)
    process, _ = packed(spool)
    assert [(graph.set, graph.key) for graph in process.graphs] == [("", "#0"), ("set", "a"), ("", "#1"), ("", "#2")]


def test_metadata_launch_order_phases_and_counters_are_kept(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.phase(True, 1, "warm-up")
    spool.allocation(SCRATCH + 8192, 8, 1, 1)
    spool.phase(False, 1, "warm-up")
    spool.graph(0x90, body([empty_node()]), ("set", "a"))
    spool.graph(0x91, body([empty_node()]), ("set", "b"))
    spool.metadata(("set", "b"), "old")
    spool.metadata(("set", "b"), "new")
    spool.launched(0x91)
    spool.launched(0x90)
    spool.counters(launches=1)
    spool.counters(launches=5)
    process, _ = packed(spool)
    assert [(graph.metadata, graph.first_use) for graph in process.graphs] == [("", 1), ("new", 0)]
    assert [(phase.name, phase.begin, phase.end) for phase in process.phases] == [("warm-up", 3, 4)]
    assert process.counters == {"launches": 5}


def test_unlabelled_graphs_of_a_scratch_phase_are_not_kept(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.phase(True)
    spool.graph(0x90, body([empty_node()]))
    spool.graph(0x91, body([empty_node()]), ("decode", "8"))
    spool.phase(False)
    spool.graph(0x92, body([empty_node()]))
    process, _ = packed(spool)
    assert [(graph.set, graph.key) for graph in process.graphs] == [("decode", "8"), ("", "#0")]


def test_lifetimes_are_steps(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.thread = 2
    spool.free(SCRATCH, 1)
    spool.commit()
    process, _ = packed(spool)
    assert process.allocations["born"].tolist() == [0, 1, 2]
    assert process.allocations["died"].tolist() == [NONE, 3, NONE]
    assert process.allocations["died_thread"].tolist() == [0, 2, 0]
    assert process.committed == 4


def test_a_torn_spool_is_used_up_to_its_last_commit(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.graph(0x90, body([empty_node()]), ("set", "a"))
    spool.commit()
    spool.graph(0x91, body([empty_node()]), ("set", "b"))
    spool.graph(0x92, body([empty_node()]), ("set", "c"))
    capture, findings = pack(spool.write(cut=3))
    assert [graph.key for graph in capture.processes[0].graphs] == ["a"]
    assert [finding.code for finding in findings] == [SPOOL_TORN_TAIL]
    capture, _ = pack(spool.write())
    assert [graph.key for graph in capture.processes[0].graphs] == ["a", "b", "c"]
    assert not capture.processes[0].complete


def test_processes_share_blobs_and_are_ordered_by_role(tmp_path: Path) -> None:
    for role in ("rank-1", "rank-0"):
        spool = start(tmp_path / "s", role)
        spool.graph(0x90, body([scale(BASE)]))
        spool.end()
        spool.write()
    capture, findings = pack(tmp_path / "s", context={"argv": "serve"})
    assert [process.role for process in capture.processes] == ["rank-0", "rank-1"]
    assert capture.blobs == (IMAGE,) and capture.context == {"argv": "serve"} and findings == []
    assert hashlib.sha256(capture.blobs[0]).digest() == hashlib.sha256(IMAGE).digest()


def test_no_spool_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="no process left a spool"):
        pack(tmp_path)


def test_a_spool_without_graphs_is_fine(tmp_path: Path) -> None:
    process, codes = packed(start(tmp_path / "s"))
    assert process.graphs == () and process.images == () and codes == []


def remade(capture_folder: Path, seed: int) -> Capture:
    """A program whose raw handles come out of a hat."""
    rng = random.Random(seed)
    handles = rng.sample(range(1 << 20, 1 << 40), 8)
    spool = SpoolWriter(capture_folder)
    spool.driver()
    spool.device()
    spool.context(handles[0])
    spool.allocation(BASE, 4096, 0, 0)
    spool.image(handles[1], IMAGE, bytes(32), context=handles[0])
    spool.kernel(handles[2], handles[1], "scale", [(0, 8), (8, 4)])
    spool.event(handles[3], 2)
    spool.range(7, handles[5], 64, handles[1], "table")
    spool.graph(handles[4], body([scale(BASE, handles[2]), event_node(handles[3])]), context=handles[0])
    spool.launched(handles[4])
    spool.end()
    return pack(spool.write())[0]


def test_raw_handles_leave_no_trace(tmp_path: Path) -> None:
    assert remade(tmp_path / "a", 1) == remade(tmp_path / "b", 2)


def test_random_damage_never_raises(tmp_path: Path) -> None:
    from helpers.varied import varied_spool

    from foundry.model.checksum import crc32c

    rng = random.Random(7)
    for round_number in range(30):
        session = tmp_path / str(round_number)
        varied_spool(session, "rank-0", rng)
        path = session / "rank-0" / "events"
        data = path.read_bytes()
        for _ in range(8):
            frames, at = [], 0
            while at < len(data):
                length = struct.unpack_from("<Q", data, at + 8)[0]
                payload = bytearray(data[at + 16 : at + 16 + length])
                if frames and payload and rng.random() < 0.15:
                    payload[rng.randrange(len(payload))] = rng.choice([0, 1, 255, rng.randrange(256)])
                header = data[at : at + 4] + struct.pack("<IQ", crc32c(bytes(payload)), length)
                frames.append(header + payload)
                at += 16 + length
            path.write_bytes(b"".join(frames))
            capture, _ = pack(session)
            archive.write(capture, tmp_path / "x.fdry", force=True)
            assert archive.read(tmp_path / "x.fdry") == capture
