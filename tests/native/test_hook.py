"""What the hook writes, and that a program does not notice it: one small program for each behaviour."""

from __future__ import annotations

import random
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from helpers.native_build import hooked_environment, link_simulator, sanitized
from native.hook_run import Bench, Outcome, counters, events, outcome

from foundry.findings import EVENT_SHARED
from foundry.model.tables import PARAMETER_ALIGNMENT
from foundry.pack import pack
from foundry.spool.reader import process_folders, read_spool

BASE = 0x403500000000
MAIN, SCRATCH, GRAPH = range(3)
HOOK, DRIVER = "libfoundry_hook.so", "libcuda.so.1"


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("hook_programs"))


def run(
    bench: Bench, name: str, folder: Path, *arguments: str, mode: str | None = "capture", **environment: str
) -> Outcome:
    program = bench.program(name, *link_simulator())
    return bench.run(program, folder / "session", *arguments, mode=mode, **environment)


def arena_of(address: int, arena_size: int) -> int:
    return (address - BASE) // arena_size


@pytest.fixture(scope="session")
def graph(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    done = run(bench, "graph", tmp_path_factory.mktemp("graph"), str(bench.folder / "kernels.image"))
    assert done.code == 0, done.errors
    return done


class TestGraphs:
    def test_the_program_works_as_without_the_hook(self, bench: Bench, graph: Outcome, tmp_path: Path) -> None:
        plain = run(bench, "graph", tmp_path, str(bench.folder / "kernels.image"), mode=None)
        assert graph.said("result") == plain.said("result")

    def test_images_are_stored_once_a_key_with_their_options(self, bench: Bench, graph: Outcome) -> None:
        spool = graph.spool()
        library, module = events(spool, "Image")
        assert (library.api, module.api) == (2, 1)
        assert library.options == ()
        assert module.options == ((0, 32),)
        assert library.key != module.key
        assert spool.blob(library.blob) == (bench.folder / "kernels.image").read_bytes()
        assert {gone.handle for gone in events(spool, "ImageGone")} == {library.handle, module.handle}

    def test_kernels_name_their_image_layout_and_attributes(self, graph: Outcome) -> None:
        spool = graph.spool()
        library, module = (image.handle for image in events(spool, "Image"))
        first, second, again = events(spool, "Kernel")
        assert (first.image, second.image) == (library, module)
        assert first.name == second.name == "add_constant"
        assert first.parameters == ((0, 8), (8, 1), (12, 4), (16, 8))
        assert dict(first.attributes)[8] == 1024
        assert (again.handle, dict(again.attributes)[8]) == (first.handle, 2048)

    def test_nodes_edges_and_parameters_are_raw(self, graph: Outcome) -> None:
        spool = graph.spool()
        captured, explicit, third = events(spool, "Graph")
        body = captured.body
        assert (captured.captured, explicit.captured) == (1, 0)
        assert explicit.instantiate_flags == 1
        assert sorted(body.types) == [0, 0, 1, 2, 7]
        assert explicit.body.types == [5, 4]
        (child,) = explicit.body.children
        assert child.types == body.types
        data = graph.number("data")
        assert body.sizes[1:3] == [24, 24]
        filled = bytes(PARAMETER_ALIGNMENT - 24 % PARAMETER_ALIGNMENT)
        by_kernel, by_extra = (struct.pack("<QBxxxIQ", data, *values, 16) + filled for values in ((3, 5), (7, 11)))
        assert body.parameters == by_kernel + by_extra
        assert third.body.parameters == body.parameters
        assert all(reason == "" for reason in body.reasons)

    def test_execs_are_followed(self, graph: Outcome) -> None:
        spool = graph.spool()
        first, second, third = (event.exec for event in events(spool, "Graph"))
        assert [event.exec for event in events(spool, "ExecLaunched")] == [first, second]
        assert [event.exec for event in events(spool, "ExecChanged")] == [first]
        assert [event.exec for event in events(spool, "ExecGone")] == [third]
        totals = counters(spool)
        assert (totals["graph_launches"], totals["graph_updates"], totals["kernel_launches"]) == (3, 2, 2)

    def test_globals_are_ranges_until_their_image_goes(self, graph: Outcome) -> None:
        spool = graph.spool()
        (found,) = events(spool, "Range")
        assert (found.kind, found.size, found.name) == (7, 8, "counter")
        assert [gone.address for gone in events(spool, "RangeGone")] == [found.address]

    def test_memory_taken_in_a_capture_lies_in_the_graph_arena(self, graph: Outcome) -> None:
        spool = graph.spool()
        (device,) = events(spool, "Device")
        assert arena_of(graph.number("inside"), device.arena_size) == GRAPH

    def test_a_driver_without_parameter_info_gives_a_reason(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "graph", tmp_path, str(bench.folder / "kernels.image"), FOUNDRY_SIM_VERSION="12030")
        assert done.code == 0, done.errors
        reasons = set(filter(None, events(done.spool(), "Graph")[0].body.reasons))
        assert reasons == {
            "kernel parameters cannot be read: needs a driver for CUDA 12.4 or newer, this one is for 12.3"
        }

    def test_what_cannot_be_rebuilt_is_named(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "refused_nodes", tmp_path)
        (graph,) = events(done.spool(), "Graph")
        assert done.said("called") == ["1"]
        assert graph.body.reasons == ["calls a host function", ""]

    def test_an_event_that_the_program_may_use_is_not_the_graphs_own(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "events", tmp_path)
        assert done.code == 0, done.errors
        assert done.lines == ["value 1", "value 2", "value 3", "twice 400"]
        _, gone, late = (event.handle for event in events(done.spool(), "EventCreated"))
        assert [event.handle for event in events(done.spool(), "EventGone")] == [gone, late]
        (process,) = pack(done.session)[0].processes
        assert [graph.reason_code for graph in process.graphs] == [EVENT_SHARED, "", EVENT_SHARED]

    @pytest.mark.parametrize(
        "failing",
        [
            "cuGraphGetNodes:1",
            "cuGraphGetEdges_v2:2",
            "cuGraphKernelNodeGetParams_v2:1",
            "cuGraphMemsetNodeGetParams:1",
        ],
    )
    def test_a_getter_that_fails_never_fails_the_program(self, bench: Bench, tmp_path: Path, failing: str) -> None:
        done = run(bench, "graph", tmp_path, str(bench.folder / "kernels.image"), FOUNDRY_SIM_FAIL=failing)
        assert done.code == 0, done.errors
        body = events(done.spool(), "Graph")[0].body
        assert any("could not be read (CUresult 999)" in reason for reason in body.reasons)


@pytest.fixture(scope="session")
def memory(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    done = run(bench, "memory", tmp_path_factory.mktemp("memory"))
    assert done.code == 0, done.errors
    return done


class TestMemory:
    def test_errors_are_the_drivers(self, bench: Bench, memory: Outcome, tmp_path: Path) -> None:
        plain = run(bench, "memory", tmp_path, mode=None)
        for word in (
            *("before-init", "no-context", "zero", "null-out", "null-free", "inner", "foreign", "free", "twice"),
            *("range", "range-small", "owner", "attributes", "pitch", "pitch-element", "ipc", "bytes", "too-much"),
        ):
            assert memory.said(word) == plain.said(word), word

    def test_places_are_packed_and_given_again(self, memory: Outcome) -> None:
        offsets = {word: memory.said(word)[1] for word in ("a", "b", "c", "d", "a-again", "c-again", "e")}
        mebibyte = 1 << 20
        assert offsets == {
            "a": "0", "b": "1024", "c": str(2 * mebibyte), "d": "1536", "a-again": "0",
            "c-again": str(2 * mebibyte), "e": str(4 * mebibyte),
        }  # fmt: skip
        assert memory.said("base") == ["403500000000"]

    def test_queries_speak_of_one_allocation(self, memory: Outcome) -> None:
        assert memory.said("range-small") == ["1"]
        assert memory.said("range-gap") == ["500"]
        assert memory.said("owner") == ["1", "numbers", "1"]

    def test_everything_is_given_back(self, memory: Outcome) -> None:
        assert memory.said("given-back") == ["1"]
        spool = memory.spool()
        assert counters(spool)["allocations"] == len(events(spool, "Allocation"))
        assert events(spool, "Told") == []

    def test_the_log_names_every_allocation_and_range(self, memory: Outcome) -> None:
        spool = memory.spool()
        log = events(spool, "Allocation")
        assert [entry.ordinal for entry in log] == list(range(len(log)))
        assert [(entry.size, entry.taken, entry.origin) for entry in log[:3]] == [
            (1000, 1024, 0), (1, 512, 0), (3 << 20, 4 << 20, 0),
        ]  # fmt: skip
        assert [entry.kind for entry in events(spool, "Range")] == [1, 3]
        assert [entry.kind for entry in events(spool, "RangeGone")] == [1, 3]
        assert memory.said("died-with-context") == ["1"]

    def test_phases_choose_the_arena(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "phases", tmp_path)
        assert done.code == 0, done.errors
        spool = done.spool()
        (device,) = events(spool, "Device")
        arenas = [
            arena_of(done.number(word), device.arena_size) for word in ("main", "scratch", "graph", "graph-2", "thread")
        ]
        assert arenas == [MAIN, SCRATCH, GRAPH, GRAPH, GRAPH]
        assert done.said("status") == ["1"]
        assert done.number("main-again") == done.number("main")
        assert counters(spool)["frees_quarantined"] == 2
        assert events(spool, "CaptureFailed") == []

    def test_streams_reuse_their_own(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "pool", tmp_path)
        assert done.code == 0, done.errors
        assert done.said("reused") == ["1"]
        assert done.said("taken-over") == ["1"]
        assert done.said("twice") == done.said("sync-free-of-idle") == ["1"]
        assert done.said("captured") == ["0", "0"]
        assert done.said("trimmed-for") == ["0"]
        totals = counters(done.spool())
        assert (totals["allocations_reused"], totals["allocations_captured"]) == (1, 1)

    def test_eight_threads_at_once(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "threads", tmp_path)
        assert (done.code, done.lines) == (0, ["done"]), done.errors
        spool = done.spool()
        assert len(events(spool, "Allocation")) == len(events(spool, "Free")) == counters(spool)["frees"]

    def test_the_same_program_gets_the_same_addresses(self, bench: Bench, tmp_path: Path) -> None:
        def addresses(seed: str) -> list[tuple[int, ...]]:
            done = run(bench, "graph", tmp_path / seed, str(bench.folder / "kernels.image"), FOUNDRY_SIM_SEED=seed)
            return [(entry.address, entry.size, entry.ordinal) for entry in events(done.spool(), "Allocation")]

        (tmp_path / "1").mkdir()
        (tmp_path / "2").mkdir()
        assert addresses("1") == addresses("2")

    def test_without_virtual_memory_the_driver_serves(self, bench: Bench, tmp_path: Path) -> None:
        refusals = ",".join(f"cuMemAddressReserve:{nth}" for nth in range(1, 6))
        done = run(bench, "phases", tmp_path, FOUNDRY_SIM_FAIL=refusals)
        spool = done.spool()
        (device,) = events(spool, "Device")
        assert (device.base, device.arena_size) == (0, 0)
        assert "range-taken" in {finding.code for finding in events(spool, "Told")}
        assert events(spool, "Allocation") == []

    def test_the_next_candidate_is_taken(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "phases", tmp_path, FOUNDRY_SIM_FAIL="cuMemAddressReserve:1")
        assert done.number("main") == 0x203500000000

    @pytest.mark.parametrize("failing", ["cuMemCreate:1", "cuMemMap:1", "cuMemSetAccess:1"])
    @pytest.mark.parametrize("error", ["2", "999"])
    def test_what_cannot_be_mapped_the_driver_serves_and_its_place_stays_empty(
        self, bench: Bench, tmp_path: Path, failing: str, error: str
    ) -> None:
        def allocations(name: str, **environment: str) -> tuple[Outcome, list[tuple[int, ...]]]:
            (tmp_path / name).mkdir()
            done = run(bench, "memory", tmp_path / name, **environment)
            assert done.code == 0, done.errors
            return done, [(entry.arena, entry.ordinal, entry.address) for entry in events(done.spool(), "Allocation")]

        _, usual = allocations("usual")
        done, others = allocations("failing", FOUNDRY_SIM_FAIL=f"{failing}:{error}")
        assert others == usual[1:]
        assert "memory-outside" in {finding.code for finding in events(done.spool(), "Told")}

    def test_where_the_driver_has_no_memory_either_the_place_is_free_again(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "memory", tmp_path, FOUNDRY_SIM_FAIL="cuMemCreate:1:2,cuMemAlloc_v2:1+:2")
        assert done.said("a")[0] == "2"
        assert [entry.ordinal for entry in events(done.spool(), "Allocation")][:2] == [0, 1]

    def test_a_peer_reaches_what_was_and_what_will_be_allocated(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "peer", tmp_path, FOUNDRY_SIM_DEVICES="2")
        assert done.code == 0, done.errors
        assert done.said("opened") == ["0"]
        assert done.said("got") == ["5"]
        assert done.said("before") == done.said("after") == ["0", "3"]
        bases = [device.base for device in events(done.spool(), "Device")]
        assert sorted(bases) == [BASE, BASE + (1 << 40)]


class TestCaptures:
    def test_an_unjoined_capture_gives_the_drivers_error(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "unjoined", tmp_path)
        plain = run(bench, "unjoined", tmp_path, mode=None)
        assert done.said("unjoined") == plain.said("unjoined") == ["904"]
        assert done.said("no-begin") == plain.said("no-begin")
        (failed,) = events(done.spool(), "CaptureFailed")
        assert failed.result == 904
        # Back in the main arena, right behind the first allocation.
        assert done.said("arena-after") == ["512"]
        assert done.said("arena-after-destroy") == ["1024"]

    def test_two_threads_capture_their_own_default_streams(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "per_thread", tmp_path)
        assert done.code == 0, done.errors
        spool = done.spool()
        assert len(events(spool, "Graph")) == 2
        assert done.number("after") < BASE + (1 << 30)
        assert len({entry.thread for entry in spool.entries if type(entry.event).__name__ == "Graph"}) == 2


class TestProcesses:
    @pytest.mark.parametrize("code", [0, 1, 3, 77, 255])
    def test_exit_codes_are_the_programs(self, bench: Bench, tmp_path: Path, code: int) -> None:
        done = run(bench, "ending", tmp_path, str(code))
        assert done.code == code
        assert done.spool().ended
        assert done.status == "ending-0 armed\n"

    @pytest.mark.parametrize(("how", "code"), [("abort", -signal.SIGABRT), ("segv", -signal.SIGSEGV), ("_exit", 9)])
    def test_a_crash_keeps_what_was_written(self, bench: Bench, tmp_path: Path, how: str, code: int) -> None:
        done = run(bench, "ending", tmp_path, how)
        (spool,) = done.spools()
        assert done.code == code
        assert not spool.ended
        assert not spool.torn
        assert len(events(spool, "Allocation")) == 1

    def test_a_kill_at_any_moment_leaves_whole_frames(self, bench: Bench, tmp_path: Path) -> None:
        program = bench.program("ending", *link_simulator())
        generator = random.Random(11)
        graphs = 0
        for attempt in range(12):
            session = tmp_path / str(attempt)
            session.mkdir()
            process = subprocess.Popen(
                [str(program), "loop"], env=hooked_environment("capture", session), stdout=subprocess.PIPE, text=True
            )
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(generator.random() / 20)
            process.kill()
            process.wait()
            (spool,) = (read_spool(folder) for folder in process_folders(session))
            assert spool is not None
            assert {finding.code for finding in spool.findings} <= {"spool-torn-tail", "spool-no-end"}
            graphs += len(events(spool, "Graph"))
        assert graphs > 12

    def test_a_program_that_closes_every_file_keeps_its_own(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "ending", tmp_path, "close", str(tmp_path / "mine"))
        assert done.code == 0
        assert (tmp_path / "mine").read_bytes() == b""
        assert done.spool().ended

    def test_fork_before_the_first_use(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "fork", tmp_path, "before")
        assert (done.code, done.said("status"), done.said("child")) == (0, ["0"], ["403500000000"])
        assert len(done.spools()) == 1

    def test_fork_after_the_first_use(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "fork", tmp_path, "after")
        assert (done.said("init"), done.said("alloc"), done.said("free")) == (["3"], ["3"], ["3"])
        spool = done.spool()
        assert spool.ended
        assert len(events(spool, "Free")) == 1

    def test_fork_while_another_thread_allocates(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "fork", tmp_path, "loop")
        assert (done.code, done.said("failed")) == (0, ["0"]), done.errors
        assert len(done.spools()) == 1

    def test_the_loader_and_the_hook_never_wait_for_each_other(self, bench: Bench, tmp_path: Path) -> None:
        library = bench.library("loader_library")
        for _ in range(40):
            assert run(bench, "loader", tmp_path, str(library)).code == 0

    def test_a_full_disk_disarms_and_the_program_goes_on(self, bench: Bench, tmp_path: Path) -> None:
        program = bench.program("ending", *link_simulator())
        session = tmp_path / "session"
        session.mkdir()
        limited = subprocess.run(
            ["bash", "-c", 'ulimit -f 4096; trap "" XFSZ; exec "$@"', "-", str(program), "loop-bounded"],
            env=hooked_environment("capture", session), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        done = outcome(session, limited.returncode, limited.stdout, limited.stderr)
        assert done.code == 0
        assert "disarmed" in done.status
        assert "bytes could not be written to the spool" in done.status

    def test_roles_count_processes_of_one_name(self, bench: Bench, tmp_path: Path) -> None:
        for _ in range(3):
            run(bench, "ending", tmp_path, "0")
        run(bench, "ending", tmp_path, "0", RANK="5")
        assert sorted(folder.name for folder in process_folders(tmp_path / "session")) == [
            "ending-0", "ending-1", "ending-2", "rank-5",
        ]  # fmt: skip

    def test_a_session_that_cannot_be_written_leaves_the_program_alone(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "ending", tmp_path, "4", FOUNDRY_SPOOL=str(tmp_path / "missing"))
        assert done.code == 4
        assert done.status.startswith("ending-0 disarmed no folder could be made under")


@pytest.fixture(scope="session")
def doors(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    done = run(bench, "doors", tmp_path_factory.mktemp("doors"))
    assert done.code == 0, done.errors
    return done


class TestDoors:
    def answers(self, done: Outcome, name: str, door: str) -> set[str]:
        words = (line.split() for line in done.lines)
        return {found[2] for found in words if len(found) == 3 and found[0] == name and found[1].startswith(door)}

    @pytest.mark.parametrize("door", ["handle", "default", "next"])
    @pytest.mark.parametrize(
        "name", ["cuMemAlloc_v2", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuGetProcAddress", "cuGetProcAddress_v2"]
    )
    def test_dlsym_gives_the_hook(self, doors: Outcome, name: str, door: str) -> None:
        assert self.answers(doors, name, door) == {HOOK}

    def test_a_direct_link_gives_the_hook(self, doors: Outcome) -> None:
        assert self.answers(doors, "cuMemAlloc_v2", "direct") == {HOOK}

    @pytest.mark.parametrize(
        "name",
        ["cuMemAlloc", "cuLaunchKernel", "cuGetProcAddress", "cuGraphInstantiate", "cuStreamBeginCapture", "(empty)"],
    )
    def test_entry_points_give_the_hook_in_every_version(self, doors: Outcome, name: str) -> None:
        assert self.answers(doors, name, "entry") == {HOOK}

    def test_what_is_only_forwarded_goes_straight_to_the_driver(self, doors: Outcome) -> None:
        assert self.answers(doors, "cuDeviceGet", "handle") == self.answers(doors, "cuDeviceGet", "entry") == {DRIVER}

    @pytest.mark.parametrize("name", ["cuFooBarNotThere", "cudnnCreate", "cuda_something"])
    def test_other_names_are_untouched(self, doors: Outcome, name: str) -> None:
        assert self.answers(doors, name, "") == {"none"}

    def test_both_query_forms_agree(self, doors: Outcome) -> None:
        assert not [line for line in doors.lines if "disagree" in line]

    def test_bad_queries_get_the_drivers_answer(self, bench: Bench, doors: Outcome, tmp_path: Path) -> None:
        plain = run(bench, "doors", tmp_path, mode=None)
        assert doors.said("null-out") == plain.said("null-out")
        assert doors.said("null-name") == plain.said("null-name")

    def test_without_a_mode_every_door_leads_to_the_driver(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "doors", tmp_path, mode="")
        for door in ("handle", "default", "entry"):
            assert self.answers(done, "cuMemAlloc_v2" if door != "entry" else "cuMemAlloc", door) == {DRIVER}
        assert list((tmp_path / "session").iterdir()) == []

    @pytest.mark.parametrize("mode", ["capture", "", None])
    def test_next_means_after_the_library_that_asks(self, bench: Bench, tmp_path: Path, mode: str | None) -> None:
        library = bench.library("next_library")
        done = bench.run(bench.program("next", str(library)), tmp_path / "session", mode=mode)
        assert done.lines == ["parent 1", "nothing 1", "symbol 1", "missing 1 1"]

    @pytest.mark.parametrize("mode", ["capture", "", None])
    def test_without_a_driver_there_is_none(self, bench: Bench, tmp_path: Path, mode: str | None) -> None:
        done = bench.run(bench.program("absent"), tmp_path / "session", mode=mode)
        assert done.code == 7
        assert done.lines[:3] == ["default 0", "error 1", "self 0"]

    @pytest.mark.skipif(sanitized(), reason="the sanitizer's runtime refuses RTLD_DEEPBIND")
    def test_a_library_that_goes_past_the_hook_is_named(self, bench: Bench, tmp_path: Path) -> None:
        library = bench.library("deep_library", *link_simulator())
        done = run(bench, "deep", tmp_path, str(library))
        (found,) = (finding for finding in events(done.spool(), "Told") if finding.code == "hook-bypassed")
        assert str(library) in found.text
        assert "cuMem" in found.text

    def test_a_driver_that_contradicts_the_list_leaves_the_hook_inert(self, bench: Bench, tmp_path: Path) -> None:
        done = run(bench, "ending", tmp_path, "5", FOUNDRY_SIM_MASK="cuGraphLaunch")
        assert done.code == 5
        assert done.status.startswith(
            "- disarmed driver 13.0 does not match the list of functions: the driver lacks cuGraphLaunch"
        )
        assert process_folders(tmp_path / "session") == []

    @pytest.mark.parametrize("version", ["11080", "12000", "12040", "12080", "13000"])
    def test_older_drivers_are_served(self, bench: Bench, tmp_path: Path, version: str) -> None:
        done = run(bench, "phases", tmp_path, FOUNDRY_SIM_VERSION=version)
        assert done.code == 0, done.errors
        assert done.number("main") == BASE
