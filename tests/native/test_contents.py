"""Memory that was allocated during a capture comes back with what the program put there."""

from __future__ import annotations

import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from helpers.native_build import hooked_environment, link_simulator
from native.fault_cases import build_images
from native.hook_run import Bench, Outcome

from foundry.findings import Finding
from foundry.model import Process
from foundry.pack import pack


class Tables:
    """The program, captured and restored."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        self.program = bench.program("tables", *link_simulator())

    def run(self, name: str, kind: str, *more: str, mode: str | None = "capture", **environment: str) -> Outcome:
        image = str(self.bench.folder / "kernels.image")
        return self.bench.run(self.program, self.folder / name, image, kind, *more, mode=mode, **environment)

    def captured(self, kind: str, *more: str, **environment: str) -> tuple[Process, list[Finding]]:
        done = self.run("captured", kind, *more, **environment)
        assert done.code == (-signal.SIGKILL if more else 0), done.errors
        capture, findings = pack(self.folder / "captured")
        (process,) = capture.processes
        self.blobs = capture.blobs
        return process, findings

    def restored(self, kind: str) -> Outcome:
        images = build_images(self.folder / "captured", self.folder / "images")
        done = self.run("restored", kind, mode="restore", FOUNDRY_IMAGE=str(images), FOUNDRY_SIM_SEED="8")
        assert done.code == 0, done.errors
        return done


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("contents"))


@pytest.fixture
def tables(bench: Bench, tmp_path: Path) -> Tables:
    return Tables(bench, tmp_path)


@pytest.mark.parametrize("kind", ["table", "counter", "many", "beside"])
def test_a_restored_graph_reads_what_the_captured_one_read(tables: Tables, kind: str) -> None:
    plain = tables.run("plain", kind, mode=None)
    process, _ = tables.captured(kind)
    assert all(graph.restorable for graph in process.graphs)
    done = tables.restored(kind)
    assert done.lines == plain.lines
    assert "not restored" not in done.errors


def test_of_each_allocation_the_part_is_kept_that_is_not_zero(tables: Tables) -> None:
    process, _ = tables.captured("table")
    (held,) = process.contents
    (allocation,) = process.allocations[process.allocations["arena"] == 2]
    assert (held.address, held.size) == (int(allocation["address"]), 3 << 20)
    data = tables.blobs[held.blob]
    assert data[:32] == bytes(16) + struct.pack("<4f", 10, 11, 12, 13)
    assert data[-4096:].rstrip(b"\0") == data[16:32]


def test_memory_that_nobody_filled_is_not_kept(tables: Tables) -> None:
    process, _ = tables.captured("counter")
    assert process.contents == ()


def test_two_captures_keep_the_same(bench: Bench, tmp_path: Path) -> None:
    found = []
    for name, seed in (("a", "7"), ("b", "9")):
        tables = Tables(bench, tmp_path / name)
        tables.folder.mkdir()
        process, _ = tables.captured("many", FOUNDRY_SIM_SEED=seed)
        found.append([(held.address, tables.blobs[held.blob]) for held in process.contents])
    assert found[0] == found[1] != []


@pytest.mark.parametrize(
    ("kind", "code", "key", "text"),
    [
        ("large", "contents-too-large", "first", "holds more than is kept"),
        ("addresses", "contents-addresses", "first", "holds addresses of memory"),
        ("replaced", "contents-replaced", "first", "lies where another was made later"),
        ("foreign", "contents-foreign", "second", "is of a thread that captured nothing"),
    ],
)
def test_what_cannot_be_kept_is_named_and_captured_anew(
    tables: Tables, kind: str, code: str, key: str, text: str
) -> None:
    plain = tables.run("plain", kind, mode=None)
    process, findings = tables.captured(kind)
    assert [(graph.key, graph.reason_code) for graph in process.graphs if not graph.restorable] == [(key, code)]
    (told,) = [finding for finding in findings if finding.code == code]
    assert told.where == f"program-0, graph tables {key}" or key in told.where
    assert "memory that was allocated during a capture (allocation " in told.text
    assert text in told.text
    done = tables.restored(kind)
    if kind != "addresses":  # which are others without the hook
        assert done.lines == plain.lines
    assert f"not restored {key}" in done.errors


def test_memory_that_is_read_late_is_told(tables: Tables) -> None:
    process, findings = tables.captured("beside")
    assert len(process.contents) == 2
    (told,) = [finding for finding in findings if finding.code == "contents-late"]
    assert "was read after its graph was made" in told.text


def test_nothing_is_read_where_nothing_is_to_be_kept(tables: Tables) -> None:
    process, _ = tables.captured("table", FOUNDRY_CONTENTS="0")
    assert process.contents == ()
    assert all(graph.restorable for graph in process.graphs)


def test_what_was_told_before_a_kill_is_whole(tables: Tables) -> None:
    plain = tables.run("plain", "table", mode=None)
    process, _ = tables.captured("table", "killed")
    assert [graph.restorable for graph in process.graphs] == [True]
    assert tables.restored("table").lines == plain.lines


def test_a_kill_while_it_is_read_leaves_a_capture_without_the_graph(tables: Tables) -> None:
    session = tables.folder / "captured"
    session.mkdir()
    # Read twice: to see what is not zero, and to keep that.
    hang = {"FOUNDRY_SIM_HANG": "cuMemcpyDtoHAsync_v2:2"}
    running = subprocess.Popen(
        [str(tables.program), str(tables.bench.folder / "kernels.image"), "table"],
        env=hooked_environment("capture", session) | hang,
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + 30
    while not (session / "tables-0" / "blob.1").exists() and time.monotonic() < until:
        time.sleep(0.02)
    running.kill()
    assert running.wait() == -signal.SIGKILL
    assert (session / "tables-0" / "blob.1").exists()
    capture, findings = pack(session)
    (process,) = capture.processes
    assert (process.graphs, process.contents) == ((), ())
    assert [told.code for told in findings] == ["spool-no-end"]


@pytest.mark.parametrize(
    "fault",
    [
        f"{function}:{nth}"
        for function in ("cuMemcpyDtoHAsync_v2", "cuStreamCreate", "cuStreamSynchronize", "cuCtxPushCurrent_v2")
        for nth in ("1", "2", "3", "1+")
    ]
    + ["cuMemsetD8Async:1", "cuMemsetD8Async:1+", "cuCtxRecordEvent:1+", "cuEventQuery:1+", "cuEventCreate:1+"],
)
def test_a_failure_of_the_reading_harms_nobody(tables: Tables, fault: str) -> None:
    plain = tables.run("plain", "table", mode=None)
    done = tables.run("captured", "table", FOUNDRY_SIM_FAIL=fault)
    if done.code:  # the program's own call
        assert "gives 999" in done.errors
        return
    assert done.lines == plain.lines
    capture, _ = pack(tables.folder / "captured")
    (graph,) = capture.processes[0].graphs
    assert graph.restorable or graph.reason_code == "contents-unread"
    assert tables.restored("table").lines == plain.lines


def test_without_an_answer_on_the_work_in_progress_nothing_is_kept(tables: Tables) -> None:
    process, _ = tables.captured("table", FOUNDRY_SIM_FAIL="cuEventQuery:1+:600")
    assert [graph.reason_code for graph in process.graphs] == ["contents-unread"]
