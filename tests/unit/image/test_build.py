"""What stands in a restore image, read back from the file."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from helpers.image_checker import checker, image_faults
from helpers.image_reader import ImageFile
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

from foundry import image
from foundry.errors import DiskFullError
from foundry.image import layout
from foundry.model import NONE
from foundry.model.checksum import crc32c
from foundry.pack import pack

BASE, ARENA, PAGE = 0x400000000000, 1 << 38, 2 << 20
GRAPH_ARENA = BASE + 2 * ARENA
IDENTITY = bytes(range(32)).hex()
KEY = bytes(range(100, 132))


def rich_spool(session: Path) -> SpoolWriter:
    spool = SpoolWriter(session)
    spool.driver(13000, True)
    spool.device()
    spool.context(0xC0)
    spool.context(0xC1, primary=False, ordinal=0)
    spool.allocation(BASE, 1000, 0, 0)
    spool.allocation(BASE + 1024, 500, 0, 1)
    spool.thread = 3
    spool.free(BASE)
    spool.thread = 0
    spool.allocation(BASE, 700, 0, 2)
    spool.allocation(GRAPH_ARENA + 512, 4096, 2, 0)
    spool.allocation(GRAPH_ARENA + 3 * PAGE, 64, 2, 1)
    spool.image(0x10, b"SIMULATED IMAGE " * 8, KEY, options=[(7, 1 << 60)], api=1, context=0xC0)
    spool.kernel(0x77, 0x10, "scale", [(0, 8), (8, 4)], [(8, 4096), (9, -1)])
    spool.event(0xE0, 2)
    nodes = [
        memset_node(GRAPH_ARENA + 512, 5, 16),
        kernel_node(0x77, struct.pack("<QI", BASE + 16, 9), (3, 2, 1), (64, 1, 1), 48, 0, [(5, b"\1"), (14, b"ab")]),
        child_node(body([kernel_node(0x77, struct.pack("<QI", BASE + 1030, 1)), event_node(0xE0)])),
        copy_node(copy_bytes(BASE + 1024, GRAPH_ARENA + 3 * PAGE, 64, junk=0xABCDEF)),
        event_node(0xE0, record=False),
    ]
    spool.graph(0x90, body(nodes, [(1, 2, 1 << 56), (0, 1, 0), (1, 3, 1)]), ("set", "key"), 0xC0, flags=9)
    spool.event_gone(0xE0)
    spool.metadata(("set", "key"), '{"a":1}')
    spool.graph(0x91, body([refused_node(3, "a host function")]), ("set", "host"), 0xC1)
    spool.launched(0x91)
    spool.launched(0x90)
    spool.contents(GRAPH_ARENA + 512, b"recorded")
    spool.contents(GRAPH_ARENA + 600, b"more")
    spool.counters(launches=2, graphs_blocked_ns=5 << 32)
    spool.commit()
    spool.allocation(BASE + 4096, 8, 0, 3)
    spool.end()
    return spool


@pytest.fixture
def built(tmp_path: Path) -> ImageFile:
    session = tmp_path / "spool"
    rich_spool(session).write()
    capture, _ = pack(session)
    path = tmp_path / "python-0.image"
    image.build(capture, "python-0", path, IDENTITY)
    return ImageFile(path)


def test_the_header_names_file_and_capture(built: ImageFile) -> None:
    header = built.header
    assert (header["magic"], header["abi"], header["file_size"]) == (b"FDRYIMG1", layout.ABI, len(built.data))
    assert header["capture_id"].tobytes() == bytes.fromhex(IDENTITY)
    assert (header["driver_version"], header["simulated"]) == (13000, 1)
    assert built.string(header["role"]) == "python-0"
    assert built.strings[0] == 0
    assert header["captured_nanoseconds"] == 5 << 32


def test_the_time_of_a_capture_that_did_not_measure_it_is_zero(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path / "spool")
    spool.counters(load_nanoseconds=3)
    image.build(pack(spool.write())[0], "python-0", tmp_path / "x.image", IDENTITY)
    assert ImageFile(tmp_path / "x.image").header["captured_nanoseconds"] == 0


def test_checksums_cover_header_and_sections(built: ImageFile) -> None:
    whole = np.array([built.header])
    whole["crc32c"] = 0
    assert crc32c(whole.tobytes()) == built.header["crc32c"]
    for (name, _), entry in zip(layout.SECTIONS, built.header["sections"], strict=True):
        size = int(entry["count"]) * int(entry["entry_size"])
        part = built.data[int(entry["offset"]) : int(entry["offset"]) + size]
        assert entry["crc32c"] == (0 if name == "blob_bytes" else crc32c(part))


def test_each_blob_has_a_checksum_of_its_own(built: ImageFile) -> None:
    assert len(built.blobs) == 2
    for number, entry in enumerate(built.blobs):
        assert (entry["crc32c"], entry["pad"]) == (crc32c(built.blob(number)), 0)


def test_the_log_is_the_main_arena_up_to_the_commit(built: ImageFile) -> None:
    assert [row.tolist()[:5] for row in built.log] == [
        (BASE, 1000, 0, 0, 0),
        (BASE + 1024, 500, 0, 0, 0),
        (BASE, 0, 0, 3, 1),
        (BASE, 700, 0, 0, 0),
    ]


def test_the_log_reaches_to_the_last_graph_or_to_the_end(tmp_path: Path) -> None:
    for name, commits, graph_follows, entries in (("a", True, True, 2), ("b", True, False, 1), ("c", False, False, 3)):
        spool = SpoolWriter(tmp_path / name)
        spool.driver()
        spool.device()
        spool.allocation(BASE, 64)
        if commits:
            spool.commit()
        spool.allocation(BASE + 512, 64)
        if graph_follows:
            spool.graph(0x90, body([memset_node(BASE)]))
        spool.free(BASE)
        capture, _ = pack(spool.write())
        image.build(capture, "python-0", tmp_path / "x.image", IDENTITY)
        assert len(ImageFile(tmp_path / "x.image").log) == entries


def test_references_name_what_stood_when_the_graph_was_made(built: ImageFile) -> None:
    row = built.graph("set", "key")
    part = built.references[row["first_reference"] : row["first_reference"] + row["reference_count"]]
    assert [built.allocations[number].tolist() for number in part] == [
        (BASE + 1024, 500, 0, 0, 0, 0),
        # Another thread freed what lay there before, so it is the same one only if all came as it did.
        (BASE, 700, 0, 0, 0, 4),
        (GRAPH_ARENA + 512, 4096, 0, 2, 1, 0),
        (GRAPH_ARENA + 3 * PAGE, 64, 0, 2, 1, 0),
    ]


def test_graph_memory_is_mapped_in_whole_pages_with_its_contents(built: ImageFile) -> None:
    first, second = built.mappings
    assert (first["address"], first["size"], first["contents_offset"]) == (GRAPH_ARENA, PAGE, 512)
    assert (second["address"], second["size"], second["contents"]) == (GRAPH_ARENA + 3 * PAGE, PAGE, NONE)
    assert built.blob(first["contents"]) == b"recorded" + bytes(80) + b"more"


def test_images_and_kernels_carry_what_a_load_needs(built: ImageFile) -> None:
    (loaded,) = built.images
    assert loaded["key"].tobytes() == KEY
    assert built.blob(loaded["blob"]) == b"SIMULATED IMAGE " * 8
    assert (loaded["api"], loaded["instance"], loaded["device"], loaded["whole"]) == (1, 0, 0, NONE)
    assert built.string(loaded["provenance"]) == "libkernels.so"
    assert built.image_options[loaded["first_option"]].tolist() == (7, 0, 1 << 60)
    (kernel,) = built.kernels
    assert built.string(kernel["name"]) == "scale"
    assert [row.tolist() for row in built.parameters] == [(0, 8), (8, 4)]
    assert [row.tolist() for row in built.attributes] == [(8, 4096), (9, -1)]
    assert kernel["parameter_bytes"] == 12


def test_records_follow_the_nodes(built: ImageFile) -> None:
    row = built.graph("set", "key")
    group = built.groups[row["group"]]
    nodes = built.nodes[group["first_node"] : group["first_node"] + group["node_count"]]
    assert nodes["type"].tolist() == [2, 0, 4, 1, 6]
    first = int(row["first_record"])
    assert built.record(first, layout.MEMSET_RECORD).tolist() == (GRAPH_ARENA + 512, 0, 16, 1, 5, 4)
    launch = built.record(first + 1, layout.KERNEL_RECORD)
    assert (launch["grid"].tolist(), launch["block"].tolist(), launch["shared_bytes"]) == ([3, 2, 1], [64, 1, 1], 48)
    offset, size = int(launch["parameter_offset"]), int(launch["parameter_size"])
    assert built.parameter_bytes[offset : offset + size].tobytes() == struct.pack("<QI", BASE + 16, 9)
    child = int(built.record(first + 2, layout.CHILD_RECORD)["first_record"])
    inner = built.record(child, layout.KERNEL_RECORD)
    offset = int(inner["parameter_offset"])
    assert built.parameter_bytes[offset : offset + 12].tobytes() == struct.pack("<QI", BASE + 1030, 1)
    assert built.record(child + 1, layout.EVENT_RECORD)["event"] == 0
    copy = built.copies[built.record(first + 3, layout.COPY_RECORD)["copy"]].tobytes()
    assert copy == copy_bytes(BASE + 1024, GRAPH_ARENA + 3 * PAGE, 64)
    assert built.record(first + 4, layout.EVENT_RECORD)["event"] == 0
    assert built.events.tolist() == [2]


def test_attributes_and_edges_keep_their_values_and_order(built: ImageFile) -> None:
    group = built.groups[built.graph("set", "key")["group"]]
    node = built.nodes[group["first_node"] + 1]
    part = built.node_attributes[node["first_attribute"] : node["first_attribute"] + node["attribute_count"]]
    assert [(row["id"], row["value"].tobytes()[:2]) for row in part] == [(5, b"\1\0"), (14, b"ab")]
    edges = built.edges[group["first_edge"] : group["first_edge"] + group["edge_count"]]
    assert [row.tolist() for row in edges] == [(0, 1, 0), (1, 2, 1 << 56), (1, 3, 1)]


def test_edges_are_in_the_order_of_dependencies(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path / "s")
    spool.device()
    spool.context(0xC0)
    edges = [(2, 3, 0), (0, 3, 1), (1, 3, 0), (0, 2, 0)]
    spool.graph(0x90, body([empty_node()] * 4, edges), ("set", "key"), 0xC0)
    spool.write()
    capture, _ = pack(tmp_path / "s")
    path = tmp_path / "x.image"
    image.build(capture, capture.processes[0].role, path, IDENTITY)
    assert [row.tolist() for row in ImageFile(path).edges] == [edges[3], *edges[:3]]
    if checker() is not None:
        assert image_faults(path) == ["ok"]


def test_a_graph_that_cannot_be_restored_is_named_with_its_reason(built: ImageFile) -> None:
    row = built.graph("set", "host")
    assert (row["restorable"], row["group"], row["first_use"]) == (0, NONE, 0)
    assert built.string(row["reason"]) == "node 0: a host function"
    assert row["context"] == 0
    good = built.graph("set", "key")
    assert (good["restorable"], good["first_use"], good["context"], good["instantiate_flags"]) == (1, 1, NONE, 9)
    assert built.string(good["metadata"]) == '{"a":1}'


def test_a_graph_without_a_name_is_not_built_for_nobody(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path / "spool")
    spool.device()
    spool.graph(0x90, body([empty_node()]))
    spool.graph(0x91, body([empty_node()]), ("", "named"))
    image.build(pack(spool.write())[0], "python-0", tmp_path / "x.image", IDENTITY)
    built = ImageFile(tmp_path / "x.image")
    assert [built.graph("", key)["restorable"] for key in ("#0", "named")] == [0, 1]
    assert "without a name" in built.string(built.graph("", "#0")["reason"])


def test_an_unknown_role_is_an_error(tmp_path: Path) -> None:
    rich_spool(tmp_path / "spool").write()
    capture, _ = pack(tmp_path / "spool")
    with pytest.raises(KeyError):
        image.build(capture, "rank-7", tmp_path / "x.image", IDENTITY)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rich_spool(tmp_path / "spool").write()
    capture, _ = pack(tmp_path / "spool")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(DiskFullError, match="bytes are needed"):
        image.build(capture, "python-0", tmp_path / "x.image", IDENTITY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spool"]


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")
def test_the_hook_accepts_what_is_built(tmp_path: Path) -> None:
    if checker() is None:
        pytest.fail("the hook has no check of restore images")
    paths = []
    for seed in range(150):
        capture = varied_capture(random.Random(seed))
        for process in capture.processes:
            paths.append(tmp_path / f"{seed}-{process.role}.image")
            image.build(capture, process.role, paths[-1], IDENTITY)
    rich_spool(tmp_path / "spool").write()
    paths.append(tmp_path / "rich.image")
    image.build(pack(tmp_path / "spool")[0], "python-0", paths[-1], IDENTITY)
    assert [(path.name, fault) for path, fault in zip(paths, image_faults(*paths), strict=True) if fault != "ok"] == []


def test_an_entry_of_the_log_says_what_it_is_near(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path)
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.allocation(BASE, 64)
    spool.graph(0x90, body([memset_node(BASE)]), ("decode", "16"), 0xC0)
    spool.allocation(BASE + 512, 64, 0, 1)
    for kind, name in ((1, "warm-up"), (2, "")):
        spool.phase(True, kind, name)
        spool.allocation(BASE + 1024 * (1 + kind), 64, 0, 1 + kind)
        spool.phase(False, kind, name)
    spool.free(BASE)
    capture, _ = pack(spool.write())
    image.build(capture, "python-0", tmp_path / "x.image", IDENTITY)
    built = ImageFile(tmp_path / "x.image")
    assert [built.string(row["where"]) for row in built.log] == [
        "before the first graph",
        "after graph `decode` `16`",
        "in phase `warm-up`",
        "in a phase",
        "after a phase",
    ]


def test_contents_far_apart_are_pieces_of_their_own(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path)
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.allocation(GRAPH_ARENA, 9 * PAGE, 2)
    for at, data in ((PAGE - 2, b"over"), (PAGE + 100, b"same"), (5 * PAGE, b"far"), (9 * PAGE - 4, b"last")):
        spool.contents(GRAPH_ARENA + at, data)
    spool.graph(0x90, body([memset_node(GRAPH_ARENA)]), ("decode", "16"), 0xC0)
    capture, _ = pack(spool.write())
    image.build(capture, "python-0", tmp_path / "x.image", IDENTITY)
    built = ImageFile(tmp_path / "x.image")
    assert [
        ((int(row["address"]) - GRAPH_ARENA) // PAGE, int(row["size"]) // PAGE, int(row["contents_offset"]))
        for row in built.mappings
    ] == [(0, 2, PAGE - 2), (2, 3, 0), (5, 1, 0), (6, 2, 0), (8, 1, PAGE - 4)]
    held = [built.blob(row["contents"]) for row in built.mappings if row["contents"] != NONE]
    assert held == [b"over" + bytes(98) + b"same", b"far", b"last"]
