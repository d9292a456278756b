"""Whole outputs of help and of the tables, as they were last agreed on.

`UPDATE_SNAPSHOTS=1` writes them anew; read the difference before you keep it.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, program

SNAPSHOTS = Path(__file__).with_name("snapshots")
COMMANDS = ("capture", "restore", "inspect", "list", "verify", "doctor")


def check(name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert text == path.read_text()


def normal(text: str) -> str:
    """Without what differs between versions of typer: the type beside an argument, and how far columns stand apart."""
    text = re.sub(r"(\[?ARCHIVE\]?) <path>", r"\1", text).replace("  [required]", "")
    return "\n".join(re.sub(r"(?<=\S) {2,}", "  ", line) for line in joined_columns(text).splitlines()) + "\n"


def joined_columns(text: str) -> str:
    """Options whose help is wrapped, on one line each: where it wraps depends on the width of the first column."""
    return re.sub(r"\n {10,}(?=\S)", " ", text)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(foundry_command: CommandLine, command: str) -> None:
    result = foundry_command.run(*command.split(), "--help", environment={"COLUMNS": "100"})
    assert (result.returncode, result.stderr) == (0, "")
    check(f"help-{command or 'foundry'}", normal(result.stdout))


def test_no_arguments_show_the_help(foundry_command: CommandLine) -> None:
    assert foundry_command.run().stdout == foundry_command.run("-h").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_help_lists_its_exit_codes(foundry_command: CommandLine, command: str) -> None:
    assert re.search(r"Exit codes:\n\n +\d", foundry_command.run(command, "--help").stdout)


def test_the_version_is_one_line(foundry_command: CommandLine) -> None:
    assert re.fullmatch(r"foundry \S+\n", foundry_command.run("--version").stdout)


@pytest.fixture
def captured(foundry_command: CommandLine) -> CommandLine:
    result = foundry_command.run("capture", "-q", "-o", "a.fdry", "--", *program("--simulated", "--graphs", 2))
    assert result.returncode == 0
    foundry_command.run("capture", "-q", "--", *program("--simulated"))
    return foundry_command


def without_the_machine(text: str, command: CommandLine) -> str:
    for word in program()[:2]:
        text = text.replace(shlex.quote(word), word)
    text = text.replace(program()[0], "python").replace(str(Path(program()[1]).parent), "helpers")
    text = text.replace(str(command.folder.resolve()), "FOLDER")
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\dZ)?", "TIME", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    text = re.sub(r"fake_program-[0-9a-f]{16}", "fake_program-KEY", text)
    text = re.sub(r"\d+(\.\d)? (bytes|kB)", "SIZE", text)
    return re.sub(r"(?<=\S) {2,}", "  ", text)


def test_inspect_for_people(captured: CommandLine) -> None:
    result = captured.run("inspect", "a.fdry")
    assert (result.returncode, result.stderr) == (0, "")
    check("inspect", without_the_machine(result.stdout, captured))


def test_list_for_people(captured: CommandLine) -> None:
    result = captured.run("list")
    check("list", without_the_machine(result.stdout + result.stderr, captured))


def test_list_names_what_it_cannot_read(captured: CommandLine) -> None:
    (captured.store / "broken.fdry").write_bytes(b"broken")
    result = captured.run("list")
    assert result.returncode == 0
    assert "broken.fdry" in result.stdout


def test_list_of_an_empty_store(foundry_command: CommandLine) -> None:
    result = foundry_command.run("list")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == f"foundry: no archive in `{foundry_command.store}`; make one: `foundry capture -- CMD`\n"


def test_verify(captured: CommandLine) -> None:
    result = captured.run("verify", "a.fdry")
    assert (result.returncode, result.stderr) == (0, "")
    check("verify", without_the_machine(result.stdout, captured))
    path = captured.work / "a.fdry"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    result = captured.run("verify", "a.fdry")
    assert result.returncode == 1
    assert result.stderr.startswith("foundry: error: ")


def test_no_colours_and_no_spaces_at_line_ends_when_piped(captured: CommandLine) -> None:
    for words in (["inspect", "a.fdry"], ["list"], ["doctor"]):
        text = captured.run(*words, environment={"TERM": "xterm-256color"}).stdout
        assert "\x1b" not in text
        assert not re.search(r" +$", text, re.MULTILINE)
