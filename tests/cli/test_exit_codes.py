"""The status of `foundry capture` and `foundry restore` is the command's, unless foundry failed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, program, shell

BOTH = pytest.mark.parametrize("verb", ["capture", "restore"])


@BOTH
@pytest.mark.parametrize("code", [1, 3, 77, 255])
def test_an_exit_code_is_passed_on(foundry_command: CommandLine, verb: str, code: int) -> None:
    assert foundry_command.run(verb, "--", *shell(f"exit {code}")).returncode == code


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_signal_is_128_and_its_number(foundry_command: CommandLine, number: signal.Signals) -> None:
    result = foundry_command.run("capture", "--", *program("--kill", int(number)))
    assert result.returncode == 128 + number
    assert f"signal {int(number)} ({number.name})" in result.stderr


def test_restore_becomes_the_command_so_a_signal_is_a_signal(foundry_command: CommandLine) -> None:
    assert foundry_command.run("restore", "--", *program("--kill", 9)).returncode == -9


def test_restore_as_parent_answers_128_and_the_signal(foundry_command: CommandLine) -> None:
    result = foundry_command.run("restore", "--json", "--", *program("--kill", 11))
    assert result.returncode == 139


def test_zero_needs_an_archive(foundry_command: CommandLine) -> None:
    assert foundry_command.run("capture", "--", *program()).returncode == 0
    result = foundry_command.run("capture", "--", "true")
    assert result.returncode == 125
    assert "no hooked CUDA process seen" in result.stderr
    assert len(foundry_command.archives()) == 1


@BOTH
def test_a_command_that_is_not_there_is_127(foundry_command: CommandLine, verb: str) -> None:
    for name in ("/not/there", "not-there-either", ""):
        result = foundry_command.run(verb, "--", name)
        assert result.returncode == 127
        assert result.stderr.startswith(f"foundry: error: command not found: `{name}`\n")


@BOTH
def test_a_command_that_cannot_be_executed_is_126(foundry_command: CommandLine, verb: str) -> None:
    plain = foundry_command.work / "plain"
    plain.write_text("x")
    assert foundry_command.run(verb, "--", plain).returncode == 126
    assert foundry_command.run(verb, "--", foundry_command.work).returncode == 126


@BOTH
def test_a_broken_program_file_is_126(foundry_command: CommandLine, verb: str) -> None:
    broken = foundry_command.work / "broken"
    broken.write_bytes(b"\x7fELF\0not really")
    broken.chmod(0o755)
    assert foundry_command.run(verb, "--", broken).returncode == 126


def test_a_script_without_first_line_runs_as_in_a_shell(foundry_command: CommandLine) -> None:
    script = foundry_command.work / "script"
    script.write_text('echo "got $1"; exit 4\n')
    script.chmod(0o755)
    result = foundry_command.run("restore", "--", "./script", "two words")
    assert (result.returncode, result.stdout) == (4, "got two words\n")


def test_a_script_whose_interpreter_is_missing_is_127(foundry_command: CommandLine) -> None:
    script = foundry_command.work / "script"
    script.write_text("#!/not/there\n")
    script.chmod(0o755)
    result = foundry_command.run("capture", "--", "./script")
    assert result.returncode == 127
    assert "asks for the interpreter `/not/there`" in result.stderr


@pytest.fixture
def static_program(tmp_path: Path) -> Path:
    source = tmp_path / "static.c"
    source.write_text('#include <unistd.h>\nint main(void) { return write(1, "ran\\n", 4) == 4 ? 5 : 6; }\n')
    path = tmp_path / "static program"
    subprocess.run(["cc", "-static", "-o", str(path), str(source)], check=True)
    return path


def test_a_static_program_is_refused_by_a_capture(foundry_command: CommandLine, static_program: Path) -> None:
    result = foundry_command.run("capture", "--", static_program)
    assert result.returncode == 126
    assert f"`{static_program}` is statically linked" in result.stderr
    assert result.stdout == ""


def test_a_static_program_is_started_plainly_by_a_restore(foundry_command: CommandLine, static_program: Path) -> None:
    result = foundry_command.run("restore", "--", static_program)
    assert (result.returncode, result.stdout) == (5, "ran\n")
    assert "statically linked" in result.stderr
    assert "starting without restore" in result.stderr
    assert foundry_command.run("restore", "--on-mismatch", "fail", "--", static_program).returncode == 126


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
def test_a_setuid_program_is_refused(foundry_command: CommandLine) -> None:
    path = foundry_command.work / "true"
    shutil.copy(shutil.which("true") or "", path)
    os.chown(path, 65534, 65534)
    path.chmod(0o4755)
    result = foundry_command.run("capture", "--", path)
    assert result.returncode == 126
    assert f"`{path}` is setuid" in result.stderr


def test_the_command_must_follow_two_dashes(foundry_command: CommandLine) -> None:
    result = foundry_command.run("capture", "python", "serve.py")
    assert result.returncode == 2
    assert "hint: put the command after `--`: `foundry capture -- python serve.py`" in result.stderr
    for words in (["restore"], ["restore", "--"], ["restore", "-q"], ["capture"], ["capture", "--"]):
        result = foundry_command.run(*words)
        assert result.returncode == 2
        assert f"hint: `foundry {words[0]} -- python serve.py`" in result.stderr


def test_what_is_unknown_is_named_with_where_to_look(foundry_command: CommandLine) -> None:
    result = foundry_command.run("capture", "--bogus", "--", "true")
    assert result.returncode == 2
    assert (
        result.stderr
        == "foundry: error: no such option: --bogus\n\nhint: `foundry capture --help` shows what there is\n"
    )
    result = foundry_command.run("capture", "--ready", "--", "true")
    assert result.returncode == 2
    assert "hint: `foundry capture --help` shows" in result.stderr
    result = foundry_command.run("nonsense")
    assert result.returncode == 2
    assert result.stderr == "foundry: error: no such command `nonsense`\n\nhint: `foundry --help` shows what there is\n"
