"""Trees of processes, and what becomes of them when somebody kills or signals any part at any stage (C13-C17)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, processes_with, read_until, wait_until
from helpers.native_build import link_simulator
from native.hook_run import Bench

from foundry import archive, native
from foundry.errors import NotProvenError

TREES = ("ff", "fV", "fx", "Ff", "Fv", "FS", "vX", "Vf", "sS", "Sx", "xX", "Xv", "XV")
"""How a level starts the next one: f fork, v vfork and exec, s posix_spawn, x exec in the same process. A capital
letter: after it has used the driver."""


def working(how: str) -> list[str]:
    """The levels that work: one that was forked off a process that had begun is refused by the driver, and ends."""
    levels: list[str] = []
    forked = False
    for depth, letter in enumerate(how + "."):
        if not letter.islower():
            if forked:
                break
            levels.append(f"level-{depth}")
        forked = (forked or letter == "F") if letter in "fF" else False
    return levels


@pytest.mark.parametrize("how", TREES)
def test_a_tree_of_three_levels_is_captured_and_restored(bench: Bench, command: CommandLine, how: str) -> None:
    """C13, C17: every process that may use the driver is in the archive and gets its graph back from it."""
    tree = bench.program("tree", *link_simulator())
    words = ("--", tree, 0, how)
    driver = {"LD_LIBRARY_PATH": str(native.simulator_directory())}
    plain = subprocess.run(
        [tree, "0", how], env=command.environment | driver, capture_output=True, text=True, check=False
    )
    captured = command.run("capture", "-q", "--sim", "-o", "a.fdry", *words)
    assert (captured.returncode, captured.stdout) == (plain.returncode, plain.stdout)
    levels = working(how)
    assert [line.split()[0] for line in captured.stdout.splitlines()] == levels
    capture = archive.read(command.work / "a.fdry")
    assert [len(process.graphs) for process in capture.processes] == [1] * len(levels)
    restored = command.run("restore", "-q", "--sim", "a.fdry", *words)
    assert restored.returncode == plain.returncode
    assert restored.stdout == captured.stdout.replace("captured", "restored")


@pytest.mark.parametrize("verb", ["capture", "restore"])
def test_a_child_of_a_process_that_used_the_driver_gets_the_drivers_own_refusal(
    bench: Bench, command: CommandLine, verb: str
) -> None:
    """C13: the error is the driver's, and nothing of ours is to blame for it."""
    tree = bench.program("tree", *link_simulator())
    words = ("--sim", *(("-o",) if verb == "capture" else ()), "a.fdry", "--", tree, 1, "-F")
    if verb == "restore":
        command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", tree, 1, "-F")
    done = command.run(verb, *words)
    assert (done.returncode, done.stdout.split()[0]) == (1, "level-1")
    assert "cuInit(0) gives 3" in done.stderr
    assert "foundry: warning" not in done.stderr


ENDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
STAGES = {
    "before the driver": {"FOUNDRY_SIM_HANG": "cuInit:1"},
    "in a capture": {"FOUNDRY_SIM_HANG": "cuStreamEndCapture:1"},
    "at an instantiation": {"FOUNDRY_SIM_HANG": "cuGraphInstantiateWithFlags:1"},
    "after the work": {},
}


def start(command: CommandLine, bench: Bench, *words: object, **variables: str) -> tuple[subprocess.Popen[str], Path]:
    """Start the worker under foundry; the archive is at its end or when it says that it is ready."""
    command.environment.update(variables)
    worker = bench.program("worker", *link_simulator())
    process = command.start(*words, "--", worker, 3, "wait")
    return process, worker


def wait_for_stage(worker: Path) -> None:
    """Wait until the worker, and not foundry that is about to start it, sleeps."""

    def there() -> bool:
        for pid in processes_with(str(worker)):
            try:
                if Path(f"/proc/{pid}/exe").readlink() == worker:
                    return True
            except OSError:
                pass
        return False

    wait_until(there)
    time.sleep(0.15)


def nothing_is_left(command: CommandLine, worker: Path) -> None:
    wait_until(lambda: processes_with(str(worker)) == [])
    wait_until(lambda: command.left_overs() == [])
    assert not [path for path in command.work.iterdir() if path.name not in ("a.fdry", "r.json")]


@pytest.mark.parametrize("number", sorted(ENDED))
@pytest.mark.parametrize("stage", STAGES)
def test_a_signal_at_any_stage_of_a_capture(
    bench: Bench, command: CommandLine, stage: str, number: signal.Signals
) -> None:
    """C14: the command's own end, whatever it was doing; a whole archive or none."""
    process, worker = start(command, bench, "capture", "--sim", "-o", "a.fdry", **STAGES[stage])
    wait_for_stage(worker)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number, errors
    nothing_is_left(command, worker)
    target = command.work / "a.fdry"
    assert target.exists() == (stage != "before the driver")
    if target.exists():
        (found,) = archive.read(target).processes
        assert len(found.graphs) == (stage == "after the work")


@pytest.mark.parametrize("number", [*sorted(ENDED), signal.SIGKILL])
def test_a_signal_in_the_run_that_proves(bench: Bench, command: CommandLine, number: signal.Signals) -> None:
    """C14: the archive of the first run stands, unproven; whatever was running is ended."""
    worker = bench.program("worker", *link_simulator())
    line = f"if mkdir {command.folder}/ran 2>&-; then exec {worker} 3; else exec {worker} 3 wait; fi"
    process = command.start("capture", "--prove", "--sim", "-o", "a.fdry", "--", "sh", "-c", line)
    assert process.stdout and process.stderr
    assert process.stdout.readline() == "worker captured 3\n"
    read_until(process.stderr, "waiting")
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == (-number if number == signal.SIGKILL else NotProvenError.exit_code)
    wait_until(lambda: processes_with(str(worker)) == [])
    assert [path.name for path in command.work.iterdir()] == ["a.fdry"]
    assert [len(found.graphs) for found in archive.read(command.work / "a.fdry").processes] == [1]
    # Killed, the first run's record is left to be packed, as of any capture that was killed.
    wait_until(lambda: len(command.left_overs()) == (number == signal.SIGKILL))


RESTORES = {
    "before the driver": {"FOUNDRY_SIM_HANG": "cuInit:1"},
    "in the engine": {"FOUNDRY_SIM_HANG": "cuGraphInstantiateWithFlags:1"},
    "after the work": {},
}


@pytest.fixture(scope="module")
def worker_archive(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = CommandLine(tmp_path_factory.mktemp("worker"), native.library_directory())
    worker = bench.program("worker", *link_simulator())
    assert command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", worker, 3).returncode == 0
    return command.work / "a.fdry"


@pytest.mark.parametrize(
    ("number", "report"),
    [
        *((number, True) for number in (*sorted(ENDED), signal.SIGKILL)),
        (signal.SIGTERM, False),
        (signal.SIGKILL, False),
    ],
)
@pytest.mark.parametrize("stage", RESTORES)
def test_a_signal_at_any_stage_of_a_restore(
    bench: Bench, command: CommandLine, worker_archive: Path, stage: str, number: signal.Signals, report: bool
) -> None:
    """C14: with a report foundry stays the parent of the command, without it becomes it."""
    shutil.copy(worker_archive, command.work / "a.fdry")
    words = ("restore", "--sim", "--allow", "mismatch-arguments", *(("--report", "r.json") if report else ()), "a.fdry")
    process, worker = start(command, bench, *words, **RESTORES[stage])
    wait_for_stage(worker)
    process.send_signal(number)
    process.communicate(timeout=30)
    of_ours = number == signal.SIGKILL or not report
    assert process.returncode == (-number if of_ours else 128 + number)
    wait_until(lambda: processes_with(str(worker)) == [])
    assert archive.read(command.work / "a.fdry").processes


@pytest.mark.parametrize("stage", ["in a capture", "at an instantiation"])
def test_a_worker_that_is_killed_costs_its_own_graph_only(bench: Bench, command: CommandLine, stage: str) -> None:
    """C14: what the others captured is in the archive, and what the killed one began is told."""
    worker = bench.program("worker", *link_simulator())
    hang = STAGES[stage]["FOUNDRY_SIM_HANG"]
    line = f"{worker} 1; FOUNDRY_SIM_HANG={hang} {worker} 2 & echo pid $!; wait $!; echo ended $?; {worker} 3"
    process = command.start("capture", "--sim", "-o", "a.fdry", "--", "sh", "-c", line)
    assert process.stdout
    assert process.stdout.readline() == "worker captured 1\n"
    pid = int(process.stdout.readline().split()[1])
    time.sleep(0.4)
    os.kill(pid, signal.SIGKILL)
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "ended 137\nworker captured 3\n"), errors
    capture = archive.read(command.work / "a.fdry")
    assert sorted((len(found.graphs), found.complete) for found in capture.processes) == [
        (0, False),
        (1, True),
        (1, True),
    ]
    (killed,) = (found.role for found in capture.processes if not found.complete)
    assert {finding.where for finding in capture.findings if finding.code == "spool-no-end"} == {killed}
    nothing_is_left(command, worker)


def test_a_worker_that_is_killed_in_a_restore_leaves_the_others_alone(bench: Bench, command: CommandLine) -> None:
    """C14."""
    worker = bench.program("worker", *link_simulator())
    line = f"{worker} 1; WORKER_WAITS=$WAITS {worker} 2 & wait $!; {worker} 3"
    captured = command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", "sh", "-c", line)
    assert captured.stdout == "".join(f"worker captured {number}\n" for number in (1, 2, 3))
    command.environment["WAITS"] = "1"
    process = command.start("restore", "--json", "--sim", "a.fdry", "--", "sh", "-c", line)
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(3)]
    assert lines == ["worker restored 1\n", "worker restored 2\n", "waiting\n"]
    (pid,) = (pid for pid in processes_with(str(worker)) if Path(f"/proc/{pid}/exe").readlink() == worker)
    os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "worker restored 3\n")
    nothing_is_left(command, worker)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_foundry_is_ended_while_it_packs(bench: Bench, command: CommandLine, number: signal.Signals) -> None:
    """C14: the archive is whole or not there, and what was recorded is not lost."""
    worker = bench.program("worker", *link_simulator())
    process = command.start("capture", "--sim", "-o", "a.fdry", "--", worker, 3, "commit", "wait")
    assert process.stdout
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: processes_with(str(worker)) == [])
    left = command.left_overs()
    if not (command.work / "a.fdry").exists():
        (folder,) = left
        assert command.run("pack", command.folder / "tmp" / folder).returncode in (0, 3)
    else:
        assert len(archive.read(command.work / "a.fdry").processes[0].graphs) == 1
