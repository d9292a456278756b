"""Graphs, memory and kernels as documents."""

from __future__ import annotations

import pytest
from helpers.showcase import BASE, FILL, GRAPH, MATRIX, showcase

from foundry.describe import names, values
from foundry.describe.graphs import Graphs, matching, near, title
from foundry.describe.kernels import images, kernels
from foundry.describe.memory import memory
from foundry.describe.targets import Targets
from foundry.model import Process


@pytest.fixture(scope="module")
def process() -> Process:
    return showcase().processes[0]


def test_the_list(process: Process) -> None:
    rows = Graphs(process).rows()
    assert [(title(row), row["nodes"], row["edges"], row["bodies"], row["restorable"]) for row in rows] == [
        ("decode/8", 14, 13, 2, True),
        ("decode/4", 14, 13, 2, True),
        ("prefill/8", 2, 1, 1, False),
        ("prefill/16", 1, 0, 1, False),
        (rows[4]["key"], 2, 1, 1, False),
    ]
    assert rows[0]["group"] == rows[1]["group"]
    assert [row["group_members"] for row in rows] == [2, 2, 1, 1, 1]
    assert [row["reason_code"] for row in rows[2:]] == ["foreign-memory", "scratch-memory", "node-unsupported"]


def test_a_graph_in_full(process: Process) -> None:
    graph = Graphs(process).document(1)
    top, child = graph["contents"]
    assert (graph["context"], graph["instantiate_flags"]) == (
        "primary of device 0",
        ["auto_free_on_launch", "use_node_priority"],
    )
    assert [node["type"] for node in top["nodes"]] == [
        "memset", *["kernel"] * 8, "memcpy", "graph", "empty",
    ]  # fmt: skip
    assert (top["nodes"][10]["child"], child["parent_body"], child["parent_node"]) == (1, 0, 10)
    assert [node["type"] for node in child["nodes"]] == ["kernel", "event_record"]
    matrix = top["nodes"][2]
    assert matrix["kernel"] is not None
    assert (matrix["kernel"]["name"], matrix["grid"], matrix["shared_bytes"]) == (MATRIX, [16, 2, 1], 1024)
    assert [(item["name"], item["value"]) for item in matrix["attributes"]] == [
        ("cluster_dimension", [2, 1, 1]), ("priority", 0),
    ]  # fmt: skip
    special = [edge for edge in top["edges"] if edge["data"] != "0x0"]
    assert [(edge["start"], edge["type"], edge["from_port"]) for edge in special] == [
        (1, "programmatic", 1), (5, "programmatic", 1),
    ]  # fmt: skip
    memset, copy = top["nodes"][0]["memset"], top["nodes"][9]["copy"]
    assert memset is not None
    assert (memset["destination"], memset["value"], memset["target"]["text"]) == (hex(GRAPH), 255, "graph allocation 0")
    assert copy is not None
    assert (copy["source"]["memory"], copy["destination"]["address"], copy["width"]) == (
        "device", hex(BASE + 0x200000), 256,
    )  # fmt: skip


def test_only_the_nodes_that_are_wanted(process: Process) -> None:
    graph = Graphs(process).document(0, wanted=lambda body, node: (body, node) == (1, 1), parameters=False)
    assert [[node["index"] for node in body["nodes"]] for body in graph["contents"]] == [[], [1]]
    assert len(graph["contents"][0]["edges"]) == 12


def test_a_graph_is_found_by_its_key_or_set_and_key(process: Process) -> None:
    rows = Graphs(process).rows()
    assert [title(row) for row in matching(rows, "4")] == ["decode/4"]
    assert [title(row) for row in matching(rows, "decode/8")] == ["decode/8"]
    assert [title(row) for row in matching(rows, "8")] == ["decode/8", "prefill/8"]
    assert matching(rows, "decode") == []
    assert near(rows, "decod/8")[0] == "decode/8"
    assert near(rows, "nothing like it") == []


def test_memory(process: Process) -> None:
    found = memory(process)
    arenas = {arena["arena"]: arena for arena in found["arenas"]}
    main = arenas["main"]
    assert (main["allocations"], main["live"], main["bytes"], main["all_bytes"]) == (4, 3, 0x300000, 0x300000 + 1000)
    assert (main["graph_allocations"], arenas["scratch"]["graph_allocations"]) == (3, 0)
    assert [item["graphs"] for item in found["allocations"]] == [2, 2, 2, 0, 0, 3]
    assert [(item["kind"], item["address"]) for item in found["ranges"]] == [
        ("global", "0x7f1200000000"), ("pinned", None),
    ]  # fmt: skip


def test_kernels_and_images(process: Process) -> None:
    found = {row["name"]: row for row in kernels(process)}
    assert (found[MATRIX]["uses"], found[MATRIX]["graphs"]) == (8, 2)
    assert (found[FILL]["uses"], found[FILL]["graphs"]) == (14, 5)
    assert found[FILL]["parameters"] == [[0, 4], [4, 4], [8, 8]]
    sizes = [len(blob) for blob in showcase().blobs]
    rows = images(process, sizes)
    assert [(row["format"], row["api"], row["kernels"], row["provenance"]) for row in rows] == [
        ("elf", "library", 1, "libtorch_cuda.so"), ("elf", "module", 1, ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "data", "value"),
    [
        (1, b"", {"base": "0x0", "bytes": 0, "hit_ratio": 0.0, "hit": "normal", "miss": "normal"}),
        (2, b"\1", True),
        (3, b"\4", "blocking_sync"),
        (4, bytes([2, 0, 0, 0, 1, 0, 0, 0, 1]), [2, 1, 1]),
        (5, b"\1", "spread"),
        (5, b"\x63", "#99"),
        (6, b"", False),
        (7, bytes(8) + b"\1", {"flags": 1, "at_block_start": False}),
        (8, b"\xff\xff\xff\xff", -1),
        (9, b"\0\1", {"default": 0, "remote": 1}),
        (10, b"\1", "remote"),
        (11, bytes([4, 0, 0, 0, 1, 0, 0, 0, 1]), [4, 1, 1]),
        (13, b"\1", {"device_updatable": True}),
        (14, b"\x32", 50),
        (99, b"\1\2", "0102"),
    ],
)
def test_launch_attributes(number: int, data: bytes, value: object) -> None:
    (found,) = values.launch_attributes([(number, data)])
    assert (found["value"], found["bytes"]) == (value, data.hex())


def test_what_every_launch_has_is_left_out() -> None:
    usual = values.launch_attributes([(1, b""), (3, b"\1"), (8, b""), (9, b"\0\1"), (10, b"")])
    assert values.plain_attributes(usual) == []
    assert [item["name"] for item in values.plain_attributes(values.launch_attributes([(8, b"\1")]))] == ["priority"]


def test_names_of_what_is_not_known() -> None:
    assert (names.node_type(77), names.launch_attribute(500), names.function_attribute(8)) == (
        "#77", "#500", "max_dynamic_shared_size_bytes",
    )  # fmt: skip
    assert names.flags(names.INSTANTIATE_FLAGS, 1 | 1 << 40) == ["auto_free_on_launch", f"#{1 << 40}"]


def test_a_copy_from_the_host_keeps_no_address(process: Process) -> None:
    from helpers.spool_writer import copy_bytes

    found = values.copy(copy_bytes(0x1234, BASE, 64, 1, 2), Targets(process, 0))
    assert (found["source"]["memory"], found["source"]["address"], found["source"]["target"]) == ("host", None, None)
