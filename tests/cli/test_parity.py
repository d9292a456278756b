"""`foundry parity`: what the command found, how that is told, and the exit status."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, shell
from helpers.native_build import make_kernels
from helpers.snapshots import check
from helpers.source import ROOT

from foundry import native
from foundry.keyed import Report

EQUAL = Report("decode", "equal", 8, 2, 2, 3, 1, 512, 2, 1, 1)
DIFFERENT = Report(
    "prefill", "different", 4, 1, 1, 0, 2, 256, 2, reason="round 4 (replayed), state cache at byte 0: ..."
)
REFUSED = Report("decode", "refused", 3, 1, 1, 0, 1, 96, 1, reason="no round was updated")


def telling(*reports: Report | str, code: int = 0) -> list[str]:
    """A command that appends these reports."""
    lines = [one if isinstance(one, str) else one.as_json() for one in reports]
    script = "import os, sys\n" + "".join(
        f"open(os.environ['FOUNDRY_PARITY'], 'a').write({line + chr(10)!r})\n" for line in lines
    )
    return [sys.executable, "-c", script + f"print('out'); sys.exit({code})"]


@pytest.mark.parametrize(
    ("name", "command", "code"),
    [
        ("equal", telling(EQUAL), 0),
        ("several", telling(EQUAL, DIFFERENT, REFUSED), 1),
        ("refused", telling(REFUSED, code=3), 3),
        ("nothing", shell("exit 0"), 3),
        ("nothing-failed", shell("exit 7"), 3),
        ("nothing-killed", shell("kill -9 $$"), 3),
        ("failed", telling(EQUAL, code=1), 3),
        ("torn", telling(EQUAL, '{"name": "x'), 3),
        ("different-failed", telling(DIFFERENT, code=1), 1),
    ],
)
def test_what_is_told(foundry_command: CommandLine, name: str, command: list[str], code: int) -> None:
    result = foundry_command.run("parity", "--", *command)
    assert result.returncode == code
    assert result.stdout == ("out\n" if command[0] == sys.executable else "")
    check(f"parity-{name}", result.stderr)


def test_a_name_may_hold_what_some_take_for_the_end_of_a_line(foundry_command: CommandLine) -> None:
    plain = EQUAL.as_json().replace("decode", "de\x85co\u2028de")
    done = foundry_command.run("parity", "--json", "--", *telling(plain))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr)["reports"][0]["name"] == "de\x85co\u2028de"


def test_json(foundry_command: CommandLine) -> None:
    result = foundry_command.run("parity", "--json", "--", *telling(EQUAL, REFUSED))
    assert (result.returncode, result.stdout) == (3, "out\n")
    assert json.loads(result.stderr) == {
        "exit_code": 3,
        "command_exit_code": 0,
        "simulated": False,
        "reports": [json.loads(EQUAL.as_json()), json.loads(REFUSED.as_json())],
        "error": None,
    }


def test_json_of_nothing(foundry_command: CommandLine) -> None:
    result = foundry_command.run("parity", "--json", "--", "true")
    document = json.loads(result.stderr)
    assert (result.returncode, document["exit_code"], document["reports"]) == (3, 3, [])
    assert document["error"] == "the command ended and compared nothing"


@pytest.mark.parametrize("words", [("parity",), ("parity", "--"), ("parity", "--what", "--", "true")])
def test_a_wrong_command_line(foundry_command: CommandLine, words: tuple[str, ...]) -> None:
    result = foundry_command.run(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("foundry: error: no ")
    assert re.search("hint: .*`foundry parity", result.stderr)


def test_a_command_that_cannot_run(foundry_command: CommandLine) -> None:
    assert foundry_command.run("parity", "--", "no-such-command").returncode == 127
    assert foundry_command.run("parity", "--", foundry_command.work).returncode == 126


def test_a_name_that_a_terminal_would_obey_is_shown(foundry_command: CommandLine) -> None:
    result = foundry_command.run("parity", "--", *telling(Report("a\x1b[2J\n", "equal")))
    assert "\x1b" not in result.stderr
    assert "parity of a\\x1b[2J\\n: equal" in result.stderr


def test_nothing_is_left_behind(foundry_command: CommandLine) -> None:
    foundry_command.run("parity", "--", *telling(EQUAL))
    assert not foundry_command.left_overs()


@pytest.fixture
def simulated(tmp_path: Path) -> CommandLine:
    (tmp_path / "real").mkdir()
    return CommandLine(tmp_path / "real", native.hook_library().parent)


def test_a_program_on_the_simulator_plain_and_restored(simulated: CommandLine) -> None:
    image = simulated.work / "kernels.image"
    make_kernels(image, ROOT / "tests" / "native" / "sim_kernels.c")
    program = [sys.executable, ROOT / "tests" / "native" / "keyed_program.py", image]
    keys, warm = "2:1,2:1,2:1,2:3,6:3,6:3,6:2,2:2", "warm=6:3,2:1"
    line = "parity of test: equal: 8 rounds (1 replayed, 3 updated, 2 captured, 2 eager), 2 seams crossed, "
    line += "512 bytes compared, 1 of 1 controls caught"
    result = simulated.run("parity", "--sim", "--", *program, "parity", keys)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{line}\n", f"foundry: {line}, simulated\n")
    result = simulated.run("parity", "--sim", "--", *program, "parity", keys, "hidden=1")
    assert result.returncode == 1
    assert simulated.run("capture", "--sim", "-o", "a.fdry", "--", *program, "passes", "", warm).returncode == 0
    restore = [sys.executable, *simulated.words("restore", "--sim", "--allow", "mismatch-arguments", "a.fdry")[1:]]
    result = simulated.run("parity", "--sim", "--", *restore, "--", *program, "parity", keys, warm)
    assert result.returncode == 0, result.stderr
    assert "2 graphs restored" in result.stderr
    assert "parity of test: equal: 16 rounds" in result.stderr
