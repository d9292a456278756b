"""What the hook tells of a process on its way: which library files it has mapped, and when it got how far."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.native_build import hooked_environment, link_simulator
from helpers.source import NATIVE, ROOT
from native.hook_run import Bench, Outcome, counters, events, outcome

from foundry import archive
from foundry.model.constants import MOMENT_PREFIX
from foundry.pack import pack

ON_THE_WAY = (
    "driver_begin",
    "driver_end",
    "first_context",
    "first_image",
    "first_capture",
    "first_graph",
    "last_graph",
)
ALL_OF_A_CAPTURE = (*ON_THE_WAY, "commit")
OF_A_RESTORE = ("first_asked", "first_handed", "last_built")
TICK = 10_000_000
WAIT = 0.3


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("progress_programs"))


@pytest.fixture(scope="session")
def command(bench: Bench) -> list[str]:
    first = bench.library("next_library", "-Wl,--build-id=0x0123456789abcdef")
    second = bench.library("loader_library", "-Wl,--build-id=none")
    program = bench.program("progress", *link_simulator())
    return [str(program), str(bench.folder / "kernels.image"), str(first), str(second)]


def run(bench: Bench, command: list[str], folder: Path, mode: str | None = "capture") -> Outcome:
    done = bench.run(Path(command[0]), folder / "session", *command[1:], mode=mode)
    assert done.code == 0, done.errors
    return done


@pytest.fixture(scope="session")
def done(bench: Bench, command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run(bench, command, tmp_path_factory.mktemp("progress"))


def moments(totals: dict[str, int]) -> dict[str, int]:
    return {name: value for name, value in totals.items() if name.startswith(MOMENT_PREFIX)}


def at(name: str) -> str:
    return f"{MOMENT_PREFIX}{name}_ns"


class TestLibraries:
    def test_each_is_told_once_with_its_build_id(self, done: Outcome, command: list[str]) -> None:
        begin, at_commit, at_end = events(done.spool(), "Libraries")
        names = [Path(path).name for path, _ in begin.files]
        assert "libcuda.so.1" in names
        assert len(names) == len(set(begin.files))
        assert at_commit.files == ((command[2], "0123456789abcdef"),)
        assert at_end.files == ((command[3], ""),)

    def test_neither_the_hook_nor_the_program_nor_the_kernels_own_is_one(self, done: Outcome) -> None:
        paths = [path for told in events(done.spool(), "Libraries") for path, _ in told.files]
        names = {Path(path).name for path in paths}
        assert all(path.startswith("/") for path in paths)
        assert not names & {"libfoundry_hook.so", "progress", "linux-vdso.so.1"}

    def test_they_stand_before_the_commit_and_the_end_that_they_belong_to(self, done: Outcome) -> None:
        kinds = [type(entry.event).__name__ for entry in done.spool().entries]
        told = [index for index, kind in enumerate(kinds) if kind == "Libraries"]
        commits = [index for index, kind in enumerate(kinds) if kind == "Commit"]
        assert told[0] < kinds.index("Context")
        assert told[1] < commits[0] < commits[1] < told[2] < len(kinds) - 1
        graphs = [index for index, kind in enumerate(kinds) if kind == "Graph"]
        assert graphs[1] < told[1] and graphs[2] < told[2]

    def test_a_capture_lists_them_without_their_folders(self, done: Outcome, command: list[str]) -> None:
        capture, _ = pack(done.session, origin=lambda path: ("own", "1.2") if path == command[2] else ("", ""))
        libraries = {library.name: dataclasses.astuple(library)[1:] for library in capture.processes[0].libraries}
        assert libraries["libnext_library.so"] == ("0123456789abcdef", "own", "1.2")
        assert libraries["libloader_library.so"] == ("", "", "")

    def test_two_runs_are_one_capture(self, bench: Bench, command: list[str], done: Outcome, tmp_path: Path) -> None:
        again = run(bench, command, tmp_path)
        files = [tmp_path / "first.fdry", tmp_path / "again.fdry"]
        ids = [archive.write(pack(each.session)[0], file) for each, file in zip((done, again), files, strict=True)]
        assert ids[0] == ids[1]
        assert str(bench.folder).encode() not in b"".join(map(repr_bytes, (pack(done.session)[0],)))

    def test_without_a_mode_nothing_is_told(self, bench: Bench, command: list[str], tmp_path: Path) -> None:
        folder = tmp_path / "session"
        folder.mkdir()
        off = bench.run(bench.program("ending", *link_simulator()), folder, "0", mode="")
        assert off.code == 0
        assert not list(folder.iterdir())


def repr_bytes(value: Any) -> bytes:
    return repr((value.processes[0].libraries, value.packages, value.context)).encode()


class TestMoments:
    def test_a_capture_passes_them_in_order(self, done: Outcome) -> None:
        found = moments(counters(done.spool()))
        assert list(found) == [at(name) for name in ALL_OF_A_CAPTURE]
        values = list(found.values())
        assert values == sorted(values)
        assert values[0] > 0

    def test_they_are_told_at_each_commit_and_what_comes_later_moves_none(self, done: Outcome) -> None:
        first, second, last = (moments(dict(told.values)) for told in events(done.spool(), "Counters"))
        assert second == last
        assert first == {**last, at("commit"): first[at("commit")]}
        assert first[at("commit")] < second[at("commit")]

    def test_they_count_from_the_begin_of_the_process_whatever_it_was_then(
        self, command: list[str], tmp_path: Path
    ) -> None:
        session = tmp_path / "session"
        session.mkdir()
        begin = time.monotonic_ns()
        ended = subprocess.run(
            ["bash", "-c", f'sleep {WAIT}; exec "$@"', "-", *command],
            env=hooked_environment("capture", session), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        took = time.monotonic_ns() - begin
        found = moments(counters(outcome(session, ended.returncode, ended.stdout, ended.stderr).spool()))
        assert found[at("driver_begin")] > WAIT * 1e9
        assert found[at("commit")] < took + 2 * TICK

    def test_they_are_no_part_of_what_a_capture_is(self, done: Outcome) -> None:
        (process,) = pack(done.session)[0].processes
        assert set(moments(process.spent)) == {at(name) for name in ALL_OF_A_CAPTURE}
        assert not moments(process.counters)

    def test_one_that_did_not_come_is_not_told(self, bench: Bench, tmp_path: Path) -> None:
        ended = bench.run(bench.program("ending", *link_simulator()), tmp_path / "session", "0")
        found = moments(counters(ended.spool()))
        assert list(found) == [at(name) for name in ("driver_begin", "driver_end", "first_context")]

    def test_the_registry_lists_them(self) -> None:
        header = (NATIVE / "hook" / "moments.h").read_text()
        declared = re.findall(r"^    X\((\w+)\)", header, re.M)
        assert declared == [*ALL_OF_A_CAPTURE, *OF_A_RESTORE]
        registry = (ROOT / "format_spec" / "registry.md").read_text()
        assert re.findall(r"^\| `(at_\w+)` \|", registry, re.M) == [at(name) for name in declared]
