"""Signals reach the command and all it started, are waited for, and nothing is left behind."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from helpers.commandline import PROGRAM, CommandLine, processes_with, program, read_until, shell, wait_until

from foundry import archive

TREE = """
import os, subprocess, sys, time
marker, depth = sys.argv[1], int(sys.argv[2])
if depth:
    options = {"start_new_session": True} if depth == 1 else {}
    subprocess.Popen([sys.executable, __file__, marker, str(depth - 1)], **options)
if depth == 2:
    print("tree", flush=True)
if "deaf" in marker:
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""

LAST = "\0" + "0"
"""What follows the marker in the command line of the last process of a tree."""
PYTHON = shlex.quote(sys.executable)


@pytest.fixture
def tree(foundry_command: CommandLine) -> Path:
    path = foundry_command.work / "tree.py"
    path.write_text(TREE)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_server_and_its_archive_is_written(
    foundry_command: CommandLine, number: signal.Signals
) -> None:
    target = foundry_command.work / "server.fdry"
    process = foundry_command.start("capture", "-o", target, "--", *program("--serve", "--graphs", 3))
    read_until(process.stdout, "serving")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert out == f"got {number.name}\n"
    assert process.returncode == 0
    assert f"wrote `{target}`" in err
    assert "3 graphs" in err
    assert foundry_command.left_overs() == []


def test_a_second_signal_is_passed_on_too(foundry_command: CommandLine) -> None:
    process = foundry_command.start("capture", "--", *program("--serve", "--deaf"))
    read_until(process.stdout, "serving")
    process.send_signal(signal.SIGINT)
    read_until(process.stdout, "got SIGINT")
    process.send_signal(signal.SIGINT)
    read_until(process.stdout, "got SIGINT")
    process.send_signal(signal.SIGQUIT)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGQUIT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("verb", [["capture"], ["restore", "--json"]])
def test_a_signal_ends_a_whole_tree(
    foundry_command: CommandLine, tree: Path, number: signal.Signals, verb: list[str]
) -> None:
    marker = uuid.uuid4().hex
    process = foundry_command.start(*verb, "--", sys.executable, tree, marker, 2)
    read_until(process.stdout, "tree")
    wait_until(lambda: processes_with(marker + LAST))
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert processes_with(marker) == []
    assert foundry_command.left_overs() == []


def test_what_a_command_leaves_behind_is_ended(foundry_command: CommandLine, tree: Path) -> None:
    marker = uuid.uuid4().hex
    command = f"{PYTHON} {tree} {marker} 0 & {PYTHON} {tree} {marker} 1 & sleep 0.3; exit 3"
    result = foundry_command.run("capture", "--", *shell(command))
    assert result.returncode == 3
    assert processes_with(marker) == []
    assert "that the command left behind" in result.stderr


def test_the_siblings_that_were_there_before_are_left_alone(foundry_command: CommandLine, tree: Path) -> None:
    marker = uuid.uuid4().hex
    words = shlex.join(foundry_command.words("capture", "-q", "--", "true"))
    shell_line = f"{PYTHON} {tree} {marker} 0 >/dev/null 2>&1 & echo $!; exec {words}"
    process = subprocess.run(
        shell(shell_line), env=foundry_command.environment, capture_output=False, stdout=subprocess.PIPE, text=True
    )
    sibling = int(process.stdout.split()[0])
    assert processes_with(marker) == [sibling]
    os.kill(sibling, signal.SIGKILL)


@pytest.mark.parametrize("ready", [False, True])
def test_killing_foundry_ends_the_whole_tree_and_leaves_no_archive(
    foundry_command: CommandLine, tree: Path, ready: bool
) -> None:
    marker = uuid.uuid4().hex
    target = foundry_command.work / "x.fdry"
    command = ["--", sys.executable, tree, marker, 2]
    if not ready:
        command = ["--", "sh", "-c", f"exec {PYTHON} {tree} {marker} 2"]
    process = foundry_command.start("capture", "-o", target, *command)
    read_until(process.stdout, "tree")
    wait_until(lambda: processes_with(marker + LAST))
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: processes_with(marker) == [])
    wait_until(lambda: foundry_command.left_overs() == [])
    assert list(foundry_command.work.iterdir()) == [tree]


def test_killing_foundry_also_ends_what_ignores_sigterm(foundry_command: CommandLine, tree: Path) -> None:
    marker = "deaf" + uuid.uuid4().hex
    process = foundry_command.start("capture", "--", sys.executable, tree, marker, 2)
    read_until(process.stdout, "tree")
    wait_until(lambda: processes_with(marker + LAST))
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: processes_with(marker) == [], 30)


def test_the_command_has_a_process_group_of_its_own(foundry_command: CommandLine) -> None:
    code = "import os; print(os.getpid() == os.getpgrp(), os.getpgid(os.getppid()) != os.getpgrp())"
    result = foundry_command.run("capture", "--", sys.executable, "-c", code)
    assert result.stdout == "True True\n"


def test_signals_that_were_ignored_stay_ignored(foundry_command: CommandLine) -> None:
    code = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    words = foundry_command.words("capture", "--", sys.executable, "-c", code)
    result = subprocess.run(
        ["nohup", *words], env=foundry_command.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert result.stdout == "True\n"


@pytest.mark.parametrize("verb", [["capture"], ["restore"], ["restore", "--json"]])
def test_the_command_has_the_default_signals(foundry_command: CommandLine, verb: list[str]) -> None:
    status = foundry_command.run(*verb, "--", "grep", "-E", "SigIgn|SigBlk", "/proc/self/status").stdout
    plain = subprocess.run(
        ["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"], capture_output=True, text=True, check=True
    ).stdout
    assert status == plain


def test_a_pipe_that_nobody_reads_ends_the_command(foundry_command: CommandLine) -> None:
    words = shlex.join(foundry_command.words("capture", "-q", "--", "yes"))
    result = subprocess.run(
        ["bash", "-c", f"{words} | head -1; echo ${{PIPESTATUS[0]}}"],
        env=foundry_command.environment,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.stdout == f"y\n{128 + signal.SIGPIPE}\n"


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.4])
def test_killing_foundry_while_it_writes_leaves_a_whole_archive_or_none(
    foundry_command: CommandLine, delay: float
) -> None:
    target = foundry_command.work / "a.fdry"
    process = foundry_command.start("capture", "-o", target, "--", *program("--serve", "--graphs", 400))
    read_until(process.stdout, "serving")
    process.send_signal(signal.SIGTERM)
    read_until(process.stdout, "got SIGTERM")
    time.sleep(delay)
    process.kill()
    process.communicate(timeout=30)
    whole = target.exists()
    if not whole:
        wait_until(lambda: processes_with(str(PROGRAM)) == [])
        (left,) = foundry_command.left_overs()
        assert foundry_command.run("pack", foundry_command.folder / "tmp" / left).returncode == 0
    assert len(archive.read(target).processes[0].graphs) == 400
