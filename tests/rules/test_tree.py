"""The shape of the tree: what lies at the top, how long a file may be, that each room says what it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TOP_LEVEL = {
    "foundry", "cli", "format_spec", "tests", "benchmarks", "pyproject.toml", "Makefile",
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
}  # fmt: skip
LONGEST_FILE = 500
CODE = {".py", ".cpp", ".h", ".c", ".cu"}


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()]


def test_the_top_level_holds_exactly_what_the_design_lists() -> None:
    names = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked_files()
        if path.suffix in CODE and "vectors" not in path.parts
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


@pytest.mark.parametrize(
    "room", ["foundry", "cli", "format_spec", "tests", "benchmarks", "foundry/native", "foundry/torch"]
)
def test_each_room_has_a_readme(room: str) -> None:
    assert (ROOT / room / "README.md").stat().st_size > 0


def test_unfinished_work_is_not_hidden_in_comments() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X:")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked_files()
        if path.suffix in CODE and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(mark in line for mark in marks)
    ]
    assert found == []
