"""Workers that are started at the same time are told apart, whichever is first (C13, C17)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from helpers import workers_program
from helpers.commandline import CommandLine

from foundry import archive

PROGRAM = Path(workers_program.__file__)
VALUES = {"Worker-0": 11, "Worker-1": 22}


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_each_gets_its_own_graph_whoever_comes_first(command: CommandLine, method: str) -> None:
    command.environment["TMPDIR"] = "/tmp"  # where a socket's path is short enough
    words = ("--", sys.executable, PROGRAM, method)
    captured = command.run("capture", "-q", "--sim", "-o", "a.fdry", *words, "Worker-0")
    assert captured.stdout.splitlines() == [f"{name} captured {value}" for name, value in VALUES.items()], (
        captured.stderr
    )
    roles = [process.role for process in archive.read(command.work / "a.fdry").processes]
    assert roles == [f"{name}-0" for name in VALUES]
    options = ("--sim", "--allow", "mismatch-arguments", "a.fdry")
    restored = command.run("restore", "-q", *options, *words, "Worker-1")
    assert restored.stdout.splitlines() == [f"{name} restored {value}" for name, value in VALUES.items()]


def test_processes_without_a_name_are_told_apart_by_their_arguments(command: CommandLine) -> None:
    words = ("--", sys.executable, PROGRAM, "subprocess")
    captured = command.run("capture", "-q", "--sim", "-o", "a.fdry", *words, "Worker-0")
    assert captured.stdout.splitlines() == [f"{name} captured {value}" for name, value in VALUES.items()], (
        captured.stderr
    )
    options = ("--sim", "--allow", "mismatch-arguments", "a.fdry")
    restored = command.run("restore", "-q", *options, *words, "Worker-1")
    assert restored.stdout.splitlines() == [f"{name} restored {value}" for name, value in VALUES.items()]


def test_one_with_other_arguments_starts_plainly_and_says_why(command: CommandLine) -> None:
    words = ("--", "sh", "-c", f"for n in 11 $MORE; do {sys.executable} {PROGRAM} worker Worker-0 $n </dev/null; done")
    command.environment["MORE"] = "22"
    assert command.run("capture", "-q", "--sim", "-o", "a.fdry", *words).returncode == 0
    command.environment["MORE"] = "33"
    restored = command.run("restore", "--json", "--sim", "a.fdry", *words)
    assert restored.stdout.splitlines() == ["begun", "Worker-0 restored 11", "begun", "Worker-0 captured 33"]
    (told,) = json.loads(restored.stderr.splitlines()[-1])["disarmed"].items()
    assert told[1] == f"the archive has no process `{told[0]}`"


def test_ranks_have_children_of_a_name(command: CommandLine) -> None:
    words = ("--", "env", "RANK=3", sys.executable, PROGRAM, "spawn", "Worker-1")
    assert command.run("capture", "-q", "--sim", "-o", "a.fdry", *words).returncode == 0
    roles = [process.role for process in archive.read(command.work / "a.fdry").processes]
    assert roles == [f"rank-3.{name}-0" for name in VALUES]


def test_those_that_nothing_tells_apart_get_no_graph_of_another(command: CommandLine) -> None:
    """Whichever comes first would get the graph of the one that came first at the capture."""
    words = ("--", sys.executable, PROGRAM, "alike")
    captured = command.run("capture", "-q", "--sim", "-o", "a.fdry", *words, "Worker-0")
    assert captured.stdout.splitlines() == [f"{name} captured {value}" for name, value in VALUES.items()]
    found = archive.read(command.work / "a.fdry")
    reasons = {(graph.reason_code, graph.reason) for process in found.processes for graph in process.graphs}
    assert reasons == {
        (
            "ambiguous-process",
            "another process of the same rank, name and arguments ran beside it, and nothing tells which is which",
        )
    }
    later = found.processes[1].role
    assert [(one.code, one.where) for one in found.findings if one.code == "ambiguous-process"] == [
        ("ambiguous-process", later)
    ]
    options = ("--sim", "--json", "--allow", "mismatch-arguments", "a.fdry")
    restored = command.run("restore", *options, *words, "Worker-1")
    assert restored.stdout.splitlines() == [f"{name} captured {value}" for name, value in VALUES.items()]
    assert json.loads(restored.stderr.splitlines()[-1])["code"] == "mismatch-no-graphs"


def test_those_that_run_one_after_the_other_get_theirs(command: CommandLine) -> None:
    script = f'for n in 11 22; do echo "Worker $n" | {sys.executable} {PROGRAM} worker; done'
    words = ("--", "sh", "-c", script)
    assert command.run("capture", "-q", "--sim", "-o", "a.fdry", *words).returncode == 0
    restored = command.run("restore", "-q", "--sim", "a.fdry", *words)
    assert restored.stdout.splitlines() == ["begun", "Worker restored 11", "begun", "Worker restored 22"]


def test_helpers_of_a_rank_with_other_arguments_do_not_count(command: CommandLine) -> None:
    words = ("--", "env", "RANK=3", sys.executable, PROGRAM, "subprocess", "Worker-1")
    assert command.run("capture", "-q", "--sim", "-o", "a.fdry", *words).returncode == 0
    found = archive.read(command.work / "a.fdry")
    assert [process.role for process in found.processes] == ["rank-3", "rank-3.1"]
    assert all(graph.restorable for process in found.processes for graph in process.graphs)
