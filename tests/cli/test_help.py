"""Whole outputs of help, of tables and of summaries, at 80 columns."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, program, read_until, wait_until
from helpers.snapshots import check

from foundry import native
from foundry.cli import application
from foundry.launch import descendants

COMMANDS = tuple(module.NAME for module in application.COMMANDS)
WIDTH = {"COLUMNS": "80"}


def normal(text: str) -> str:
    """Without what differs between versions of typer: the type beside an argument, and how far columns stand apart."""
    text = re.sub(r"(\[?[A-Z]+\]?) <path>", r"\1", text).replace("  [required]", "")
    return "\n".join(re.sub(r"(?<=\S) {2,}", "  ", line) for line in joined_columns(text).splitlines()) + "\n"


def joined_columns(text: str) -> str:
    """Options whose help is wrapped, on one line each: where it wraps depends on the width of the first column."""
    return re.sub(r"\n {10,}(?=\S)", " ", text)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(foundry_command: CommandLine, command: str) -> None:
    result = foundry_command.run(*command.split(), "--help", environment=WIDTH)
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80
    check(f"help-{command or 'foundry'}", normal(result.stdout))


def test_no_arguments_show_the_help(foundry_command: CommandLine) -> None:
    assert foundry_command.run().stdout == foundry_command.run("-h").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_help_lists_its_exit_codes(foundry_command: CommandLine, command: str) -> None:
    text = foundry_command.run(command, "--help", environment=WIDTH).stdout
    codes = re.search(r"Exit codes:\n\n((?: {4}.*\n)+)", text)
    assert codes
    numbers = [line.split()[0] for line in codes[1].splitlines() if line.split()[0].isdigit()]
    assert {"0", "2"} <= set(numbers)


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


def test_list_for_people(captured: CommandLine) -> None:
    result = captured.run("list")
    check("list", without_the_machine(result.stdout + result.stderr, captured))


def test_list_on_a_narrow_terminal(captured: CommandLine) -> None:
    result = captured.run("list", environment=WIDTH)
    check("list-narrow", without_the_machine(result.stdout + result.stderr, captured))


def test_capture_and_restore_summaries(tmp_path: Path) -> None:
    command = CommandLine(tmp_path, native.library_directory())
    words = [sys.executable, "-m", "foundry.selftest"]
    result = command.run("capture", "--sim", "-o", "a.fdry", "--", *words, environment=WIDTH)
    assert (result.returncode, json.loads(result.stdout)["restored"]) == (0, 0)
    check("capture", without_the_machine(result.stderr, command))
    result = command.run("restore", "--sim", "a.fdry", "--", *words, environment=WIDTH)
    assert (result.returncode, json.loads(result.stdout)["restored"]) == (0, 3)
    # Of so little work it depends on the moment whether a restore saves time, which is then told.
    told = re.sub(r", \d+\.\d+ s saved", "", without_the_machine(result.stderr, command))
    check("restore", re.sub(r"in \d+\.\d+ s", "in TIME", told))
    refused = command.run("restore", "a.fdry", "--", *words, environment=WIDTH)
    check("restore-refused", without_the_machine(refused.stderr.partition("\n")[0] + "\n", command))


def test_pack(captured: CommandLine) -> None:
    process = captured.start("capture", "-o", "b.fdry", "--", *program("--serve", "--simulated"))
    read_until(process.stdout, "serving")
    process.kill()
    process.communicate(timeout=30)
    (folder,) = (captured.folder / "tmp").iterdir()
    wait_until(lambda: not descendants.of_session(f"FOUNDRY_SPOOL={folder / 'spool'}", -1))
    found = captured.run("list", environment=WIDTH)
    check("list-killed", without_the_machine(found.stdout + found.stderr, captured).replace(folder.name, "SESSION"))
    result = captured.run("pack", folder, environment=WIDTH)
    assert (result.returncode, result.stdout) == (0, "")
    check("pack", without_the_machine(result.stderr, captured))


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
    assert "archive-section-damaged" in result.stdout + result.stderr


def test_no_colours_and_no_spaces_at_line_ends_when_piped(captured: CommandLine) -> None:
    for words in (["inspect", "a.fdry"], ["list"], ["doctor", "--no-self-test"]):
        text = captured.run(*words, environment={"TERM": "xterm-256color"}).stdout
        assert "\x1b" not in text
        assert not re.search(r" +$", text, re.MULTILINE)
