"""Nodes, kernels and images; and which graphs share a group."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.packing import BASE, GRAPH, IMAGE, one_graph, packed, scale, start
from helpers.spool_writer import body, child_node, empty_node, event_node, kernel_node, memset_node, refused_node
from unit.binary.test_fatbin import CUBIN, container, entry

from foundry.findings import (
    CONTEXT_MIXED,
    DEVICE_UNKNOWN,
    EVENT_UNKNOWN,
    EXEC_CHANGED,
    IMAGE_KEPT_WHOLE,
    KERNEL_UNKNOWN,
    NODE_UNSUPPORTED,
    PARAMETER_LAYOUT,
    SPOOL_BLOB_MISSING,
)
from foundry.model import NONE
from foundry.pack import pack

FATBINS = Path(__file__).parents[2] / "data" / "fatbins"


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


def test_what_the_driver_compiles_stays_as_the_program_handed_it_over(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    text = b".version 8.0 ptx text\0"
    fatbin = container(entry(CUBIN, 80), entry(text, 90, kind=1))
    spool.image(0x20, text, b"\1" * 32, form=3, options=[(0, 32), (14, 2)])
    spool.image(0x21, fatbin, b"\2" * 32, form=2)
    spool.kernel(0x80, 0x20, "scale", [(0, 8), (8, 4)])
    spool.kernel(0x81, 0x21, "scale", [(0, 8), (8, 4)])
    spool.graph(0x90, body([scale(BASE, 0x80), scale(BASE, 0x81)]))
    capture, findings = pack(spool.write())
    images = capture.processes[0].images
    assert [capture.blobs[image.blob] for image in images] == [text, fatbin]
    assert [(image.original, image.unpacked, image.options) for image in images] == [
        (NONE, False, ((0, 32), (14, 2))),
        (NONE, False, ()),
    ]
    assert [(finding.code, finding.text) for finding in findings if "image" in finding.code] == [
        (
            IMAGE_KEPT_WHOLE,
            f"fatbin of {len(fatbin)} bytes from `libkernels.so` is kept whole: no cubins for sm_90",
        )
    ]


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


JOIN = [(0, 1, 0), (0, 2, 256), (1, 3, 0), (2, 3, 1 << 40)]


def test_the_order_in_which_edges_to_other_nodes_come_does_not_matter(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    nodes = [empty_node()] * 4
    spool.graph(0x90, body(nodes, JOIN))
    spool.graph(0x91, body(nodes, [*JOIN[2:], *JOIN[1::-1], JOIN[0]]))
    process, _ = packed(spool)
    (group,) = process.groups
    assert group.edges.tolist() == [(0, 1, 0), (1, 3, 0), (2, 3, 1 << 40), (0, 2, 256)]
    assert (group.order.tolist(), group.ordered_edges.tolist()) == ([], group.edges.tolist())


def test_the_order_of_edges_to_one_node_is_that_of_its_dependencies(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    nodes = [empty_node()] * 4
    for graph in (0x90, 0x91):
        spool.graph(graph, body(nodes, JOIN[::-1]))
    spool.graph(0x92, body(nodes, JOIN))
    spool.graph(0x93, body([empty_node(), child_node(body(nodes, JOIN)), child_node(body(nodes, JOIN[::-1]))]))
    process, _ = packed(spool)
    turned, plain, _ = process.groups
    assert process.bodies.tolist() == [0, 0, 1, 2, 1, 0]
    assert (turned.edges == plain.edges).all()
    assert turned.ordered_edges.tolist() == [(0, 1, 0), (0, 2, 256), (2, 3, 1 << 40), (1, 3, 0)]
    assert (turned.dependencies, plain.dependencies) == ({1: [0], 2: [0], 3: [2, 1]}, {1: [0], 2: [0], 3: [1, 2]})


def test_children_have_groups_and_bodies_of_their_own(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    inner = body([scale(BASE)])
    spool.graph(0x90, body([child_node(body([child_node(inner)])), child_node(inner), scale(GRAPH)]))
    spool.graph(0x91, inner)
    process, _ = packed(spool)
    assert process.bodies.tolist() == [2, 1, 0, 0, 0]
    assert process.children.tolist() == [1, 3, 2]
    assert [graph.body for graph in process.graphs] == [0, 4]
