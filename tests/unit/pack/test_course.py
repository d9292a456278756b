"""Names, and the course of things in a process and a session."""

from __future__ import annotations

import hashlib
import random
import struct
from pathlib import Path

import pytest
from helpers.packing import BASE, GRAPH, IMAGE, SCRATCH, packed, scale, start
from helpers.spool_writer import SpoolWriter, body, empty_node, event_node

from foundry import archive
from foundry.errors import SpoolError
from foundry.findings import LABEL_REPEATED, SPOOL_TORN_TAIL
from foundry.model import NONE, Capture
from foundry.pack import pack


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


def test_what_is_used_first_after_the_last_commit_has_no_rank(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    for number in range(4):
        spool.graph(0x90 + number, body([empty_node()]), ("set", str(number)))
    spool.launched(0x92)
    spool.commit()
    spool.launched(0x91)
    spool.commit()
    spool.launched(0x90)
    process, _ = packed(spool)
    assert [graph.first_use for graph in process.graphs] == [NONE, 1, 0, NONE]


def test_times_are_kept_apart_from_counters(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.counters(launches=5, graphs_blocked_ns=7, load_nanoseconds=8, columns=9)
    spool.counters(graphs_blocked_ns=11)
    process, _ = packed(spool)
    assert process.counters == {"launches": 5, "columns": 9}
    assert process.spent == {"graphs_blocked_ns": 11, "load_nanoseconds": 8}


def test_two_runs_that_took_other_times_are_one_capture(tmp_path: Path) -> None:
    identities = []
    for took in (10**9, 10**9 + 1):
        spool = start(tmp_path / f"{took}")
        spool.graph(0x90, body([scale(BASE)]), ("decode", "8"))
        spool.counters(captures_run=1, graphs_blocked_ns=took)
        spool.end()
        identities.append(archive.write(pack(spool.write())[0], tmp_path / f"{took}.fdry"))
    assert identities[0] == identities[1]


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
    spool.event_gone(handles[3])
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
