"""With --json, commands whose output is data tell errors as JSON, on standard output and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.commandline import CommandLine

VECTORS = Path(__file__).parents[2] / "format_spec" / "vectors" / "v1"


def error_of(command: CommandLine, *words: object, **options: object) -> tuple[int, dict[str, str]]:
    result = command.run(*words, "--json", **options)  # type: ignore[arg-type]
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert list(document) == ["error"]
    assert list(document["error"]) == ["code", "message", "hint"]
    assert document["error"]["message"]
    return result.returncode, document["error"]


@pytest.mark.parametrize("command", ["inspect", "verify"])
@pytest.mark.parametrize(
    ("file", "code", "status"),
    [
        ("nothing.fdry", "archive-not-found", 1),
        (VECTORS / "invalid" / "newer-major.fdry", "archive-too-new", 4),
        (VECTORS / "invalid" / "header-only.fdry", "archive-truncated", 1),
        ("/dev/null", "archive-not-one", 1),
        ("folder", "archive-not-one", 1),
    ],
)
def test_archives(foundry_command: CommandLine, command: str, file: object, code: str, status: int) -> None:
    (foundry_command.work / "folder").mkdir()
    returned, error = error_of(foundry_command, command, file)
    assert (returned, error["code"]) == (status, code)


@pytest.mark.parametrize("command", ["inspect", "list", "verify", "pack", "doctor"])
def test_a_wrong_command_line(foundry_command: CommandLine, command: str) -> None:
    returned, error = error_of(foundry_command, command, "--no-such-option")
    assert (returned, error["code"]) == (2, "usage")
    assert "--no-such-option" in error["message"]
    assert f"foundry {command} --help" in error["hint"]


def test_commands_that_run_a_child_leave_standard_output_alone(foundry_command: CommandLine) -> None:
    result = foundry_command.run("capture", "--json", "--", "no-such-command")
    assert (result.returncode, result.stdout) == (127, "")


def test_every_error_has_a_code_in_the_registry() -> None:
    from foundry import errors

    text = (VECTORS.parents[1] / "registry.md").read_text(encoding="utf-8")
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    codes = {value.code for value in classes if "code" in vars(value)}
    assert len(codes) > 10
    assert [code for code in codes if f"`{code}`" not in text] == []
