"""Spools: every prefix on a frame boundary is read, and whatever else they hold is told, never a traceback."""

from __future__ import annotations

import random
import struct
import time
from pathlib import Path

import pytest
from helpers.source import NATIVE
from helpers.spool_writer import (
    SpoolWriter,
    body,
    child_node,
    copy_bytes,
    copy_node,
    empty_node,
    event_node,
    items,
    kernel_node,
    memset_node,
    refused_node,
    text,
)

from foundry.errors import SpoolError
from foundry.findings import SPOOL_BAD_CHECKSUM, SPOOL_BAD_FRAME, SPOOL_NO_END, SPOOL_TORN_TAIL
from foundry.model.checksum import crc32c
from foundry.spool import events, process_folders, read_spool, restore_reports
from foundry.spool.bodies import attribute_set

HEADER = NATIVE / "abi" / "spool_format.h"


def full_spool(session: Path) -> SpoolWriter:
    """A frame of each kind."""
    spool = SpoolWriter(session)
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.allocation(0x1000, 100)
    spool.free(0x1000)
    spool.range(7, 0x2000, 8, 0x10, "table")
    spool.range_gone(7, 0x2000)
    spool.contents(0x1000, b"bytes")
    spool.image(0x10, b"image", bytes(32), options=[(1, 2)])
    spool.image_gone(0x10)
    spool.kernel(0x77, 0x10, "scale", [(0, 8)], [(8, -1)])
    spool.image_restored(0x11, 3)
    spool.graph(0x90, body([kernel_node(0x77, bytes(12), attributes=[(5, b"\1"), (2, b"ab")])]), ("set", "key"))
    spool.metadata(("set", "key"), "{}")
    spool.exec_gone(0x90)
    spool.exec_changed(0x90, "update")
    spool.event(0xE0, 2)
    spool.frame(45, struct.pack("<QI", 7, 900))
    spool.launched(0x90)
    spool.event_gone(0xE0)
    spool.phase(True)
    spool.counters(launches=1 << 60, at_commit_ns=7)
    spool.frame(52, text("some-code") + text("words"))
    spool.libraries(("/usr/lib/liba.so", "ab"))
    spool.commit(3)
    spool.frame(60, text("set") + text("key") + b"\0" + text("no memory") + struct.pack("<Q", 5))
    spool.frame(61, items([text("map") + struct.pack("<Q", 12)]))
    spool.end()
    return spool


def test_each_kind_is_read(tmp_path: Path) -> None:
    full_spool(tmp_path).write()
    spool = read_spool(tmp_path / "python-0")
    assert spool is not None
    assert spool.begin == (events.ABI, 1, "python-0", "/usr/bin/python3", (("RANK", "0"),))
    found = [entry.event for entry in spool.entries]
    assert found[0] == events.Driver(13000, 1, "/usr/lib/libcuda.so.1")
    assert found[3] == events.Allocation(0x1000, 100, 512, 0, 0, 0, 0)
    assert found[8] == events.Image(0x10, 2, 4, 1, 5, bytes(32), 0, ((1, 2),), "/usr/lib/libkernels.so", "ab12", 4096)
    assert found[10] == events.Kernel(0x77, 0x10, "scale", ((0, 8),), ((8, -1),))
    assert events.ImageRestored(0x11, 3) in found
    assert events.EventGone(0xE0) in found
    assert events.Counters((("launches", 1 << 60), ("at_commit_ns", 7))) in found
    assert events.Libraries((("/usr/lib/liba.so", "ab"),)) in found
    assert found[-3] == events.GraphRestored("set", "key", 0, "no memory", 5)
    assert spool.ended and not spool.torn and spool.findings == []
    assert spool.blob(0) == b"bytes" and spool.blob(99) is None


def test_every_kind_of_the_header_has_a_reader() -> None:
    import re

    kinds = {int(number) for number in re.findall(r"FOUNDRY_EVENT_\w+ = (\d+)", HEADER.read_text())}
    assert set(events.READERS) == kinds
    assert f"#define FOUNDRY_ABI {events.ABI}u" in HEADER.read_text()


def test_the_columns_of_a_body(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path)
    nodes = [
        kernel_node(0x77, b"p" * 12, (1, 2, 3), (4, 5, 6), 7, 8, [(5, b"\1")]),
        kernel_node(0x78, b"", attributes=[(5, b"\1")]),
        memset_node(0x1000, 5, 16),
        copy_node(copy_bytes(1, 2)),
        event_node(0xE0),
        empty_node(),
        refused_node(3, "a host function"),
        child_node(body([kernel_node(0x79, b"q" * 16)])),
    ]
    spool.graph(0x90, body(nodes, [(0, 1, 5)]))
    spool.write()
    read = read_spool(tmp_path / "python-0")
    assert read is not None
    graph = read.entries[0].event
    assert isinstance(graph, events.Graph)
    found = graph.body
    assert found.types == [0, 0, 2, 1, 7, 5, 3, 4]
    assert found.nodes["kernel"][:2].tolist() == [0x77, 0x78] and found.sizes[:2] == [12, 0]
    assert found.parameters == b"p" * 12 + bytes(4)
    assert found.launches == struct.pack("<7I", 1, 2, 3, 4, 5, 6, 7) + struct.pack("<7I", 1, 1, 1, 32, 1, 1, 0)
    assert attribute_set(found.attributes[1]) == ((5, b"\1"),)
    assert found.reasons[6] == "a host function"
    assert found.memsets == [(0x1000, 0, 5, 4, 16, 1)]
    assert found.children[0].parameters == b"q" * 16
    assert found.edges.tolist() == [(0, 1, 5)]


def test_every_prefix_is_read_up_to_the_last_whole_frame(tmp_path: Path) -> None:
    writer = full_spool(tmp_path)
    writer.write()
    path = tmp_path / "python-0" / "events"
    whole = path.read_bytes()
    ends = [0]
    for frame in writer.frames:
        ends.append(ends[-1] + len(frame))
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        spool = read_spool(path.parent)
        complete = sum(end <= size for end in ends) - 1
        if complete == 0:
            assert spool is None
            continue
        assert spool is not None and len(spool.entries) == complete - 1
        codes = [finding.code for finding in spool.findings]
        if size == len(whole):
            assert codes == []
        else:
            assert codes == [SPOOL_NO_END if size in ends else SPOOL_TORN_TAIL]


def test_a_wrong_checksum_ends_the_reading(tmp_path: Path) -> None:
    writer = full_spool(tmp_path)
    data = bytearray(b"".join(writer.frames))
    at = sum(map(len, writer.frames[:5])) + 20
    data[at] ^= 1
    (tmp_path / "python-0" / "events").write_bytes(data)
    spool = read_spool(tmp_path / "python-0")
    assert spool is not None
    assert len(spool.entries) == 4
    assert [finding.code for finding in spool.findings] == [SPOOL_BAD_CHECKSUM]


def test_another_build_is_refused_with_both_numbers(tmp_path: Path) -> None:
    other = events.ABI + 1
    SpoolWriter(tmp_path, abi=other).write()
    with pytest.raises(SpoolError, match=f"found spool version {other}, expected {events.ABI}"):
        read_spool(tmp_path / "python-0")


def test_a_file_that_does_not_begin_is_refused(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path)
    writer.frames.clear()
    writer.commit()
    writer.write()
    with pytest.raises(SpoolError, match="not a spool"):
        read_spool(tmp_path / "python-0")


@pytest.mark.parametrize(
    "payload",
    [
        struct.pack("<I", 0xFFFFFFFF),
        items([struct.pack("<II", 9, 0)]) + items([]),
        items([struct.pack("<I", 3) + struct.pack("<I", 0xFFFFFFFF)]),
        items([kernel_node(1, bytes(8))[:-2]]),
        items([struct.pack("<II", 1, 0) + text(b"short") + bytes(8)]) + items([]),
        items([empty_node()]) + items([struct.pack("<IIQ", 0, 1, 0)]),
        items([empty_node()]) + struct.pack("<I", 1 << 31),
        items([kernel_node(1, attributes=[(1, bytes(65))])]) + items([]),
        items([kernel_node(1, bytes(70000))]) + items([]),
    ],
)
def test_a_malformed_graph_is_a_finding(tmp_path: Path, payload: bytes) -> None:
    spool = SpoolWriter(tmp_path)
    spool.graph(0x90, payload)
    spool.end()
    spool.write()
    read = read_spool(tmp_path / "python-0")
    assert read is not None
    assert [finding.code for finding in read.findings] == [SPOOL_BAD_FRAME]
    assert read.entries == []


def test_child_graphs_that_nest_without_end_are_a_finding(tmp_path: Path) -> None:
    nested = body([])
    for _ in range(40):
        nested = body([child_node(nested)])
    spool = SpoolWriter(tmp_path)
    spool.graph(0x90, nested)
    spool.write()
    read = read_spool(tmp_path / "python-0")
    assert read is not None and [finding.code for finding in read.findings] == [SPOOL_BAD_FRAME]


def test_damaged_payloads_with_right_checksums_never_raise(tmp_path: Path) -> None:
    rng = random.Random(1)
    writer = full_spool(tmp_path)
    originals = list(writer.frames)
    path = tmp_path / "python-0" / "events"
    for _ in range(1500):
        frames = list(originals)
        number = rng.randrange(1, len(frames))
        payload = bytearray(frames[number][16:])
        if not payload:
            continue
        for _ in range(rng.randrange(1, 4)):
            payload[rng.randrange(len(payload))] = rng.choice([0, 1, 255, rng.randrange(256)])
        frames[number] = frames[number][:4] + struct.pack("<IQ", crc32c(bytes(payload)), len(payload)) + bytes(payload)
        path.write_bytes(b"".join(frames))
        read_spool(path.parent)


def test_folders_without_events_are_no_processes(tmp_path: Path) -> None:
    SpoolWriter(tmp_path, "rank-1").write()
    SpoolWriter(tmp_path, "rank-0").write()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert [path.name for path in process_folders(tmp_path)] == ["rank-0", "rank-1"]
    with pytest.raises(SpoolError, match="cannot read the spool"):
        process_folders(tmp_path / "missing")


def test_a_restore_report_adds_up(tmp_path: Path) -> None:
    writer = full_spool(tmp_path)
    writer.write()
    (report,) = restore_reports(tmp_path)
    assert report.counters == {"launches": 1 << 60}
    assert report.timings == {"map": 12}
    assert report.moments == {"at_commit_ns": 7}
    assert [graph.reason for graph in report.graphs] == ["no memory"]
    assert [told.code for told in report.told] == ["some-code"]


def test_the_last_word_on_a_graph_counts(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path)
    for state, reason in ((1, ""), (0, "witness-differs: output")):
        text = [struct.pack("<I", len(part)) + part for part in (b"decode", b"8", reason.encode())]
        writer.frame(60, text[0] + text[1] + bytes([state]) + text[2] + struct.pack("<Q", 5))
    writer.write()
    (report,) = restore_reports(tmp_path)
    assert [(graph.state, graph.reason) for graph in report.graphs] == [(0, "witness-differs: output")]


def test_a_decode_job_is_read_well_within_a_second(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path)
    nodes = [kernel_node(0x77, bytes(570), attributes=[(5, b"\1")]) for _ in range(26_243)]
    spool.graph(0x90, body(nodes))
    spool.write()
    before = time.process_time()
    assert read_spool(tmp_path / "python-0") is not None
    assert time.process_time() - before < 1


def test_a_spool_that_could_not_be_written_on_is_told(tmp_path: Path) -> None:
    full_spool(tmp_path).write()
    (tmp_path / "python-0" / "broken").touch()
    spool = read_spool(tmp_path / "python-0")
    assert spool is not None
    assert [(finding.code, finding.severity.name) for finding in spool.findings] == [("spool-broken", "ERROR")]
