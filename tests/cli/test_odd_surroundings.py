"""What a shell can be like: closed streams, no room, no working folder, names that are no text, long commands."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence

import pytest
from helpers.commandline import CommandLine, program

STREAMS = [(1,), (2,), (0, 1, 2)]
SAYS = [sys.executable, "-c", "import os; os.write(1, b'out'); os.write(2, b'err'); os.read(0, 1)"]


def run_in_shell(command: CommandLine, line: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run `foundry` by a line of a shell, in which it is "$@"."""
    return subprocess.run(
        ["bash", "-c", line, "bash", *command.words(*words)],
        env=command.environment,
        cwd=command.work,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def captured(foundry_command: CommandLine) -> CommandLine:
    assert foundry_command.run("capture", "-q", "-o", "a.fdry", "--", *program()).returncode == 0
    return foundry_command


def closing(streams: Sequence[int]) -> str:
    return 'exec "$@" ' + " ".join(f"{number}>&-" for number in streams)


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("verb", [["capture", "-qo", "b.fdry"], ["restore", "-q"]])
def test_a_command_starts_where_streams_are_closed(
    foundry_command: CommandLine, verb: list[str], streams: Sequence[int]
) -> None:
    """What it writes goes to nothing, and never into a file that foundry or the hook opened."""
    done = run_in_shell(foundry_command, closing(streams), *verb, "--", *SAYS)
    assert done.returncode == (125 if verb[0] == "capture" else 0), done.stderr  # it uses no CUDA
    assert done.stdout == ("" if 1 in streams else "out")
    assert ("err" in done.stderr) == (2 not in streams)
    assert "Traceback" not in done.stderr


def test_an_answer_that_nobody_can_get_is_no_fault(captured: CommandLine) -> None:
    for words in (["inspect", "a.fdry"], ["verify", "--json", "a.fdry"], ["--help"], ["inspect", "none"]):
        done = run_in_shell(captured, closing((0, 1, 2) if words[-1] == "none" else (1,)), *words)
        assert done.returncode == (1 if words[-1] == "none" else 0), done.stderr
        assert "Traceback" not in done.stderr


def test_an_output_that_is_full_is_told(captured: CommandLine) -> None:
    for words in (["inspect", "a.fdry"], ["verify", "--json", "a.fdry"], ["--help"]):
        done = run_in_shell(captured, 'exec "$@" >/dev/full', *words)
        text = "foundry: error: cannot write to standard output: No space left on device\n"
        assert (done.returncode, done.stderr) == (125, text)
    for verb in (["capture", "-fo", "a.fdry"], ["restore", "a.fdry"]):
        done = run_in_shell(captured, 'exec "$@" 2>/dev/full', *verb, "--", *program())
        assert done.returncode == 0
        assert "done" in done.stdout or done.stdout == ""


def test_no_file_may_be_written(captured: CommandLine) -> None:
    """A limit of the size of files, as a full disk: a capture says so, a restore starts the command plainly."""
    limited = 'ulimit -f 0; "$@" 2>&1 | cat; exit ${PIPESTATUS[0]}'
    done = run_in_shell(captured, limited, "capture", "-o", "b.fdry", "--", "true")
    assert done.returncode == 125
    assert "foundry: error: no " in done.stdout
    done = run_in_shell(captured, limited, "restore", "a.fdry", "--", "echo", "ran")
    assert done.returncode == 0
    assert done.stdout.endswith("ran\n")
    assert "starting without restore" in done.stdout
    assert sorted(path.name for path in captured.work.iterdir()) == ["a.fdry"]


def test_a_working_folder_that_is_gone(captured: CommandLine) -> None:
    line = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
    whole, gone = str(captured.work / "a.fdry"), "the working folder is not there any more"
    assert run_in_shell(captured, line, "capture", "-fo", whole, "--", *program()).returncode == 0
    done = run_in_shell(captured, line, "capture", "-o", "b.fdry", "--", *program())
    assert (done.returncode, done.stdout) == (125, "")
    assert f"error: cannot find `b.fdry`: {gone}" in done.stderr
    done = run_in_shell(captured, line, "restore", "a.fdry", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    done = run_in_shell(captured, line, "restore", whole, "--", "./program")
    assert done.returncode == 125
    assert f"error: cannot find `program`: {gone}" in done.stderr


@pytest.mark.parametrize("mask", ["000", "777"])
def test_the_mode_of_an_archive_is_its_own(foundry_command: CommandLine, mask: str) -> None:
    done = run_in_shell(foundry_command, f'umask {mask}; exec "$@"', "capture", "-qo", "a.fdry", "--", *program())
    assert done.returncode == 0 or (mask == "777" and os.geteuid())
    if done.returncode == 0:
        assert stat.S_IMODE((foundry_command.work / "a.fdry").stat().st_mode) == 0o600


def test_what_is_no_archive_is_told_as_everywhere(foundry_command: CommandLine) -> None:
    work = foundry_command.work
    (work / "folder").mkdir()
    os.mkfifo(work / "pipe")
    (work / "empty").touch()
    for name, text in (
        ("folder", "it is not a regular file"),
        ("pipe", "it is not a regular file"),
        ("empty", "it is empty"),
        ("none", "no archive at"),
    ):
        looked_at = foundry_command.run("inspect", name)
        done = foundry_command.run("restore", name, "--", "echo", "ran")
        assert (done.returncode, done.stdout) == (0, "ran\n")
        assert text in done.stderr, done.stderr
        assert text in looked_at.stderr
        assert ("foundry capture -o" in done.stderr) == (name == "none")
    failed = foundry_command.run("restore", "--on-mismatch", "fail", "pipe", "--", "echo", "ran")
    assert (failed.returncode, failed.stdout) == (1, "")


@pytest.mark.parametrize("word", ["cd", "{"])
def test_a_word_of_the_shell_is_no_program(foundry_command: CommandLine, word: str) -> None:
    done = foundry_command.run("restore", "--", word, "/", environment={"PATH": "/not/there"})
    assert done.returncode == 127
    assert f"hint: it is a word of the shell: `sh -c '{word} ...'`" in done.stderr


NAMES = [b"n\xff.fdry", "größe.fdry".encode(), b"a\nb\x1b[31m.fdry"]


@pytest.mark.parametrize(("language", "name"), [("C", NAMES[0]), ("C", NAMES[1]), ("C.UTF-8", NAMES[2])])
def test_names_and_words_need_not_be_text(foundry_command: CommandLine, name: bytes, language: str) -> None:
    environment = {**foundry_command.environment, "LC_ALL": language, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    def run(*words: object) -> subprocess.CompletedProcess[bytes]:
        command = [word if isinstance(word, bytes) else str(word).encode() for word in foundry_command.words()]
        command += [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return subprocess.run(command, env=environment, cwd=foundry_command.work, capture_output=True, check=False)

    says = ["sh", "-c", 'printf %s "$0"', name]
    assert run("capture", "-qo", name, "--", *program()).returncode == 0
    restored = run("restore", "-q", name, "--", *says)
    assert (restored.returncode, restored.stdout) == (0, name)
    for words in (["inspect", name], ["verify", "--json", name], ["diff", name, name]):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        assert b"\x1b" not in done.stdout and b"Traceback" not in done.stderr


def test_a_command_of_ten_thousand_words(foundry_command: CommandLine) -> None:
    """All of it is kept and compared; people are shown its begin, and what differs."""
    many = [str(number) for number in range(10_000)]
    prefix = [sys.executable, "-c", "import runpy, sys; sys.argv[1:] = []; runpy.run_path(%r, run_name='__main__')"]
    prefix[2] %= program()[1]
    captured = foundry_command.run("capture", "-qo", "a.fdry", "--", *prefix, *many)
    assert captured.returncode == 0, captured.stderr
    shown = foundry_command.run("inspect", "a.fdry").stdout
    assert len(shown.splitlines()) < 40
    told = json.loads(foundry_command.run("inspect", "--json", "a.fdry").stdout)["context"]["argv"]
    assert json.loads(told)[3:] == many
    many[9_000] = "other"
    restored = foundry_command.run("restore", "a.fdry", "--", *prefix, *many)
    assert "mismatch-arguments: command: archive ... " in restored.stderr
    assert " 8999 9000 9001 " in restored.stderr and " 8999 other 9001 " in restored.stderr
    assert len(restored.stderr) < 1500


def test_a_command_that_runs_foundry(foundry_command: CommandLine) -> None:
    """The inner one has the session; the outer one says that it saw nothing."""
    inner = foundry_command.words("capture", "-q", "-o", "inner.fdry", "--", *program())
    done = foundry_command.run("capture", "-o", "outer.fdry", "--", *inner)
    assert done.returncode == 125
    assert "no hooked CUDA process seen" in done.stderr
    assert [path.name for path in foundry_command.work.iterdir()] == ["inner.fdry"]
    assert foundry_command.left_overs() == []
