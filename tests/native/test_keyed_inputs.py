"""Caches of graphs in C that are given what makes no sense: a reason, and no crash."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.native_build import SANITIZERS, base_environment, command_environment, compile_program, sanitized
from helpers.source import NATIVE, ROOT

from foundry import native

SOURCE = ROOT / "tests" / "native" / "keyed_inputs.c"
NO_ROUNDS = "it needs a cache, state, rounds, both functions, and names that the key has"
NOTHING = (
    "0 rounds (0 replayed, 0 updated, 0 captured, 0 eager), 0 seams crossed, 0 bytes compared, 0 of 0 controls caught"
)
ANSWERS = [
    "no options: there are no options",
    "no set: the set has no name",
    "long set: the set's name is too long",
    "no limit: more than 65536 graphs cannot be held",
    "names that add up to none: the names are too long",
    "no names: there are no names",
    "no values: 0, way 0, 1 passes, 1 eager",
    f"no parity options: 2 parity of no cache: misuse: {NO_ROUNDS}; {NOTHING}",
    f"no cache: 2 parity of no cache: misuse: {NO_ROUNDS}; {NOTHING}",
    f"no rounds: 2 parity of test: misuse: {NO_ROUNDS}; {NOTHING}",
    f"a control that is not in the key: 2 parity of test: misuse: {NO_ROUNDS}; {NOTHING}",
    "of no cache: 0 held",
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folders = (f"-I{NATIVE / 'keyed'}", f"-I{NATIVE / 'capi'}")
    flags = ("-std=c89", "-pedantic", *(() if sanitized() else SANITIZERS))
    sources = [SOURCE, *sorted((NATIVE / "keyed").glob("*.c"))]
    return compile_program(tmp_path_factory.mktemp("inputs") / "inputs", sources, *folders, *flags)


def test_what_makes_no_sense_is_named(program: Path) -> None:
    done = subprocess.run([program], env=base_environment(), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ANSWERS


def test_a_comparison_that_makes_no_sense_is_no_silence(program: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    commands = CommandLine(tmp_path / "work", native.hook_library().parent)
    commands.environment.update(command_environment())
    done = commands.run("parity", "--sim", "--json", "--", program)
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stderr.splitlines()[-1])
    assert [(one["name"], one["verdict"], one["reason"]) for one in told["reports"]] == [
        ("no cache", "refused", NO_ROUNDS),
        ("no cache", "refused", NO_ROUNDS),
        ("test", "refused", NO_ROUNDS),
        ("test", "refused", NO_ROUNDS),
    ]
