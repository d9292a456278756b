"""The early start: driver and contexts before the program asks, and nothing that the program could tell it by."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

import pytest
from helpers.native_build import link_simulator
from native.hook_run import Bench, Outcome, counters

from foundry import env, image
from foundry.pack import pack
from foundry.spool import restore_reports

OURS = f"child:{os.getpid()}"
FULL = ("init", "retain", "alloc")
SOON = "sleep:400"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("early_programs"))


@pytest.fixture(scope="module")
def images(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images of a capture of the program."""
    folder = tmp_path_factory.mktemp("early_images")
    run(bench, folder / "session", *FULL, mode="capture")
    capture, _ = pack(folder / "session")
    image.build(capture, "early-0", folder / "early-0.image", "00" * 32)
    return folder


def run(bench: Bench, session: Path, *words: str, mode: str | None = "restore", **environment: str) -> Outcome:
    program = bench.program("early", *link_simulator())
    return bench.run(program, session, *words, mode=mode, **environment)


def restored(bench: Bench, images: Path, session: Path, *words: str, **environment: str) -> Outcome:
    settings = {env.IMAGE: str(images), env.COMMAND: OURS, env.EARLY: "early-0:0", **environment}
    return run(bench, session, *words, **settings)


def test_it_is_armed_before_the_program_asks_for_anything(bench: Bench, images: Path, tmp_path: Path) -> None:
    done = restored(bench, images, tmp_path / "s", SOON, "status", *FULL)
    assert done.lines == ["status early-0 armed;", "init 0", "retain 0", "alloc 403500000000"]


@pytest.mark.parametrize(
    "settings",
    [
        {env.EARLY: ""},
        {env.EARLY: "early-1:0"},
        {env.EARLY: "early-0"},
        {env.EARLY: "early:0"},
        {env.COMMAND: f"self:{os.getpid()}"},
        {env.COMMAND: "child:1"},
        {env.COMMAND: ""},
        {env.COMMAND: "child"},
        {env.COMMAND: f"{os.getpid()}"},
        {"FOUNDRY_MODE": "capture"},
    ],
)
def test_it_is_only_where_it_was_asked_for(
    bench: Bench, images: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    done = restored(bench, images, tmp_path / "s", "sleep:100", "status", *FULL, **settings)
    assert done.lines[0] == "status "
    # Another process than the command has another role, which the archive of the command does not have.
    placed = ["alloc 403500000000"] if env.COMMAND not in settings else done.lines[3:]
    assert done.lines[1:] == ["init 0", "retain 0", *placed]


def test_the_context_is_not_there_until_the_program_takes_it_and_gone_when_it_lets_go(
    bench: Bench, images: Path, tmp_path: Path
) -> None:
    words = (SOON, "init", "state", "retain", "state", "alloc", "release", "state")
    plain = run(bench, tmp_path / "plain", *words, mode=None)
    done = restored(bench, images, tmp_path / "s", *words)
    states = ["state 0 0", "state 0 1", "state 0 0"]
    assert [line for line in plain.lines if line.startswith("state")] == states
    assert [line for line in done.lines if line.startswith("state")] == states


def test_what_the_program_starts_does_not_begin_early(bench: Bench, images: Path, tmp_path: Path) -> None:
    done = restored(bench, images, tmp_path / "s", "spawn", "sleep:200", "status")
    assert done.lines[0] == "status early-0 armed;", "only its parent's"
    assert len(done.spools()) == 1


def test_devices_that_are_not_there_are_left_out(bench: Bench, images: Path, tmp_path: Path) -> None:
    done = restored(bench, images, tmp_path / "s", SOON, *FULL, FOUNDRY_EARLY="early-0:7,x")
    assert done.lines == ["init 0", "retain 0", "alloc 403500000000"]


@pytest.mark.parametrize("failing", ["cuInit:1", "cuDevicePrimaryCtxRetain:1", "cuDevicePrimaryCtxRetain:1:2"])
def test_a_failure_of_its_own_is_not_the_programs(bench: Bench, images: Path, tmp_path: Path, failing: str) -> None:
    done = restored(bench, images, tmp_path / "s", SOON, *FULL, FOUNDRY_SIM_FAIL=failing)
    assert (done.code, done.lines) == (0, ["init 0", "retain 0", "alloc 403500000000"])


@pytest.mark.parametrize("failing", ["cuInit:1+", "cuDevicePrimaryCtxRetain:1+"])
def test_a_failure_of_the_programs_is_the_drivers_own(bench: Bench, images: Path, tmp_path: Path, failing: str) -> None:
    words = (SOON, "init", "retain")
    plain = run(bench, tmp_path / "plain", *words, mode=None, FOUNDRY_SIM_FAIL=failing)
    done = restored(bench, images, tmp_path / "s", *words, FOUNDRY_SIM_FAIL=failing)
    assert done.lines == plain.lines


def test_a_program_that_ends_at_once_ends_well(bench: Bench, images: Path, tmp_path: Path) -> None:
    for number in range(20):
        done = restored(bench, images, tmp_path / f"s{number}", FOUNDRY_SIM_HANG="cuInit:1:50")
        assert (done.code, done.errors) == (0, "")


def test_its_end_does_not_wait_for_an_image(bench: Bench, tmp_path: Path) -> None:
    building = tmp_path / "building"
    building.mkdir()
    (building / "early-0.image").symlink_to(tmp_path / "none")
    with (building / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        begin = time.monotonic()
        done = restored(bench, tmp_path, tmp_path / "s", SOON, "status", FOUNDRY_BUILDING=str(building))
    assert (done.code, done.lines, done.errors) == (0, ["status early-0 armed;"], "")
    assert time.monotonic() - begin < 1.9


def test_it_gets_an_image_that_comes_while_the_program_imports(bench: Bench, images: Path, tmp_path: Path) -> None:
    building = tmp_path / "building"
    building.mkdir()
    (building / "early-0.image").symlink_to(tmp_path / "early-0.image")
    with (building / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        threading.Timer(0.3, lambda: (tmp_path / "early-0.image").symlink_to(images / "early-0.image")).start()
        words = ("sleep:800", "status", *FULL)
        done = restored(bench, tmp_path, tmp_path / "s", *words, FOUNDRY_BUILDING=str(building))
    assert done.lines == ["status early-0 armed;", "init 0", "retain 0", "alloc 403500000000"]
    (report,) = restore_reports(tmp_path / "s")
    assert report.timings["image_wait"] > 10**8


def test_its_end_waits_for_the_driver_but_not_for_long(bench: Bench, images: Path, tmp_path: Path) -> None:
    begin = time.monotonic()
    done = restored(bench, images, tmp_path / "s", "sleep:100", FOUNDRY_SIM_HANG="cuInit:1")
    assert (done.code, done.errors) == (0, "")
    assert 1.5 < time.monotonic() - begin < 20


@pytest.mark.parametrize("function", ["cuInit", "cuDevicePrimaryCtxRetain"])
def test_a_call_that_does_not_come_back_is_given_up(bench: Bench, images: Path, tmp_path: Path, function: str) -> None:
    settings = {"FOUNDRY_SIM_HANG": f"{function}:1", "FOUNDRY_PATIENCE": "1"}
    done = restored(bench, images, tmp_path / "s", "sleep:100", "init", "retain", **settings)
    assert done.lines == ["init 0", "retain 0"]
    assert "disarmed a driver call of the early start does not come back" in done.status


def test_a_program_that_sets_what_the_driver_reads_begins_again(bench: Bench, images: Path, tmp_path: Path) -> None:
    words = ("status", SOON, "set:CUDA_VISIBLE_DEVICES=0", *FULL)
    done = restored(bench, images, tmp_path / "s", *words)
    assert done.code == 0
    assert done.lines[-3:] == ["init 0", "retain 0", "alloc 403500000000"]
    assert [line.split()[0] for line in done.lines] == ["status", "status", "init", "retain", "alloc"]
    assert done.errors == (
        "foundry: warning: the program changes variables that the driver reads; it begins again, "
        "without an early start\n"
    )
    assert done.status == "early-0 armed\nearly-0 armed\n"
    usual = ("set:CUDA_MODULE_LOADING=LAZY", "set:OTHER=1", *FULL)
    assert restored(bench, images, tmp_path / "usual", *usual).lines == ["init 0", "retain 0", "alloc 403500000000"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (FULL, {"start_as_command": 1}),
        (("set:CUDA_MODULE_LOADING=LAZY", *FULL), {"start_as_command": 1}),
        (("set:CUDA_VISIBLE_DEVICES=0", *FULL), {"start_as_command": 1, "start_changed_variables": 1}),
        (("set:NVIDIA_X=", *FULL), {"start_as_command": 1, "start_changed_variables": 1}),
        (("init", "flags", "retain"), {"start_as_command": 1, "start_context_flags": 1}),
        (("init", "init", "retain", "fork"), {"start_as_command": 1}),
    ],
)
def test_a_capture_tells_what_stands_against_it(
    bench: Bench, tmp_path: Path, words: tuple[str, ...], told: dict[str, int]
) -> None:
    done = run(bench, tmp_path / "s", *words, mode="capture", FOUNDRY_COMMAND=OURS)
    assert {name: value for name, value in counters(done.spool()).items() if name.startswith("start_")} == told


def test_a_capture_tells_of_forks(bench: Bench, tmp_path: Path) -> None:
    done = run(bench, tmp_path / "s", "fork", *FULL, mode="capture", FOUNDRY_COMMAND=OURS)
    found = [counters(spool) for spool in done.spools()]
    assert sorted(
        tuple((name, value) for name, value in one.items() if name.startswith("start_")) for one in found
    ) == [(("start_as_command", 1), ("start_forks", 1)), (("start_in_fork", 1),)]


def test_a_capture_of_no_command_tells_nothing(bench: Bench, tmp_path: Path) -> None:
    done = run(bench, tmp_path / "s", *FULL, mode="capture")
    assert not [name for name in counters(done.spool()) if name.startswith("start_")]
