"""Archives between processes, places and people (C52-C69)."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.native_build import link_simulator
from helpers.source import ROOT
from native.hook_run import Bench

from foundry import archive


@pytest.fixture
def worker(bench: Bench) -> Path:
    return bench.program("worker", *link_simulator())


def test_a_restore_while_captures_replace_the_archive(bench: Bench, command: CommandLine, worker: Path) -> None:
    """C52: it gets the one or the other, whole."""
    words = ("--", worker, 3)
    assert command.run("capture", "-q", "--sim", "-o", "a.fdry", *words).returncode == 0
    captures: list[subprocess.CompletedProcess[str]] = []

    def replace() -> None:
        for _ in range(2):
            captures.append(command.run("capture", "-q", "-f", "--sim", "-o", "a.fdry", *words))

    thread = threading.Thread(target=replace)
    thread.start()
    restored = [command.run("restore", "--sim", "a.fdry", *words)]
    while thread.is_alive():
        restored.append(command.run("restore", "--sim", "a.fdry", *words))
    thread.join()
    assert [done.returncode for done in captures] == [0] * 2
    for done in restored:
        assert (done.returncode, done.stdout) == (0, "worker restored 3\n"), done.stderr


def test_eight_ranks_write_one_archive(bench: Bench, command: CommandLine, worker: Path) -> None:
    """C52: all at once, each its own part, and each gets its own back."""
    line = "".join(f"RANK={rank} WORLD_SIZE=8 {worker} {rank + 20} & " for rank in range(8)) + "wait"
    captured = command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", "sh", "-c", line)
    assert captured.returncode == 0
    capture = archive.read(command.work / "a.fdry")
    assert [process.role for process in capture.processes] == [f"rank-{rank}" for rank in range(8)]
    restored = command.run("restore", "-q", "--sim", "a.fdry", "--", "sh", "-c", line)
    assert sorted(restored.stdout.splitlines()) == [f"worker restored {rank + 20}" for rank in range(8)]


def test_an_archive_and_its_program_may_move(bench: Bench, command: CommandLine, worker: Path) -> None:
    """C56: to other folders, under another home and cache, where the old ones are gone."""
    old, new = command.folder / "old", command.folder / "new"
    for folder in (old, new):
        folder.mkdir()
    shutil.copy(worker, old)
    captured = command.run("capture", "-q", "--sim", "-o", old / "a.fdry", "--", old / "worker", 3)
    assert captured.stdout == "worker captured 3\n"
    for name in ("worker", "a.fdry"):
        shutil.move(old / name, new / name)
    old.rmdir()
    shutil.rmtree(command.cache, ignore_errors=True)
    other = {"HOME": str(new), "XDG_CACHE_HOME": str(new / "cache"), "USER": "somebody"}
    restored = command.run("restore", "--sim", "a.fdry", "--", new / "worker", 3, cwd=new, environment=other)
    assert (restored.returncode, restored.stdout) == (0, "worker restored 3\n"), restored.stderr
    capture = archive.read(new / "a.fdry")
    arguments = {"argv"}
    assert not [name for name, value in capture.context.items() if str(old) in value and name not in arguments]
    for process in capture.processes:
        assert not [image for image in process.images if str(command.folder) in image.provenance]


RISKY = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def test_nothing_of_an_archive_is_run_by_python() -> None:
    """C60: no part of foundry unpickles, evaluates or unpacks to a name that it was told."""
    found = []
    for path in [*ROOT.glob("foundry/**/*.py"), *ROOT.glob("cli/**/*.py"), ROOT / "format_spec" / "minireader.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                names = ["pickle"]
            found += [f"{path}:{node.lineno}" for name in names if name.partition(".")[0] in RISKY]  # type: ignore[attr-defined]
    assert found == []


def test_a_restart_loop_leaves_nothing_behind(bench: Bench, command: CommandLine, worker: Path) -> None:
    """C64, C69: capture once, start again and again; files stay as many as after the first start."""
    command.run("capture", "-q", "--sim", "--", worker, 3)

    def files() -> set[str]:
        return {str(path.relative_to(command.cache)) for path in command.cache.rglob("*") if path.is_file()}

    after_first: set[str] = set()
    for turn in range(4):
        restored = command.run("restore", "-q", "--sim", "--", worker, 3)
        assert (restored.stdout, restored.stderr) == ("worker restored 3\n", "")
        assert command.left_overs() == []
        if turn < 2:
            after_first = {name for name in files() if "sessions" not in name}
    assert {name for name in files() if "sessions" not in name} == after_first
    assert sum("sessions" in name for name in files()) < 10


def test_where_the_time_went_is_told(bench: Bench, command: CommandLine, worker: Path) -> None:
    """C65: for each graph and each part of the start."""
    command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", worker, 3)
    restored = command.run("restore", "--json", "--sim", "a.fdry", "--", worker, 3)
    report = json.loads(restored.stderr.splitlines()[-1])
    assert report["graphs_restored"] == 1
    (process,) = report["processes"]
    moments = process["moments"]
    assert list(moments.values()) == sorted(moments.values())
    assert {"driver_begin", "first_context", "first_asked", "first_handed", "last_built"} <= set(moments)
