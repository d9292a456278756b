"""What a shell is offered when the user presses the tab key."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from helpers.commandline import CommandLine


@pytest.fixture
def files(foundry_command: CommandLine) -> CommandLine:
    work = foundry_command.work
    for name in ("deep/er/a.fdry", "deep/er/b.fdry", "deep/er/c.txt", "job.fdry", "notes.txt", ".hidden.fdry"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).touch()
    return foundry_command


def offered(command: CommandLine, *words: str) -> list[str]:
    environment = {
        "COMP_WORDS": " ".join(("foundry", *words)),
        "COMP_CWORD": str(len(words)),
        "_FOUNDRY_COMPLETE": "complete_bash",
    }
    result = command.run(environment=environment)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.split()


def test_commands_and_options(files: CommandLine) -> None:
    assert offered(files, "ins") == ["inspect"]
    assert offered(files, "pack", "--fo") == ["--force"]


@pytest.mark.parametrize("command", [("inspect",), ("verify",), ("restore", "--sim")])
def test_archives_and_folders_only(files: CommandLine, command: tuple[str, ...]) -> None:
    assert offered(files, *command, "j") == ["job.fdry"]
    assert offered(files, *command, "n") == []


@pytest.mark.parametrize("start", ["d", "deep", "deep/", "deep/er/"])
def test_a_folder_that_is_the_only_choice_is_looked_into(files: CommandLine, start: str) -> None:
    assert offered(files, "inspect", start) == ["deep/er/a.fdry", "deep/er/b.fdry"]
    assert offered(files, "inspect", "deep/er/b") == ["deep/er/b.fdry"]


def test_hidden_files_when_asked_for(files: CommandLine) -> None:
    assert offered(files, "inspect", ".h") == [".hidden.fdry"]
    assert offered(files, "inspect", "nowhere/x") == []


def test_the_shell_itself_completes(files: CommandLine) -> None:
    wrapper = files.folder / "bin" / "foundry"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(files.words())} "$@"\n')
    wrapper.chmod(0o755)
    script = files.run(environment={"_FOUNDRY_COMPLETE": "source_bash"}).stdout
    assert "complete -o default -F _foundry_completion foundry" in script
    text = f"""
{script}
COMP_WORDS=(foundry inspect j) COMP_CWORD=2
_foundry_completion foundry
echo "${{COMPREPLY[@]}}"
"""
    environment = {**files.environment, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["bash", "-c", text], env=environment, cwd=files.work, capture_output=True, text=True, check=True
    )
    assert result.stdout == "job.fdry\n"
