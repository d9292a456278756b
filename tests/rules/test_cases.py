"""`tests/CASES.md` has a line for each reported case, and every test that it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from helpers.source import ROOT

TESTS = ROOT / "tests"
LINES = [
    line.strip("| ").split(" |") for line in (TESTS / "CASES.md").read_text().splitlines() if line.startswith("| C")
]
ROWS = {words[0].strip(): words[-1].strip() for words in LINES}
REASONS = ("waits for ", "can't apply: ", "not listed")


@cache
def names_in(path: str) -> set[str]:
    found = set()
    for node in ast.parse((TESTS / path).read_text()).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


def test_every_case_has_its_line() -> None:
    assert list(ROWS) == [f"C{number:02}" for number in range(1, 70)]


@pytest.mark.parametrize("case", ROWS)
def test_what_holds_a_case_is_there(case: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::([\w:]+)`", ROWS[case])
    assert named or ROWS[case].startswith(REASONS)
    for path, name in named:
        assert name in names_in(path), f"{path} has no {name}"


def test_cases_that_tests_name_are_in_the_table() -> None:
    """A case in a test's docstring, whose line does not name the test, is one that was forgotten there."""
    forgotten = []
    for path in TESTS.glob("cases/test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            for case in re.findall(r"\bC\d\d\b", ast.get_docstring(node) or ""):
                if f"{node.name}`" not in ROWS.get(case, ""):
                    forgotten.append(f"{case}: {path.name}::{node.name}")
    assert forgotten == []
