from __future__ import annotations

from pathlib import Path

import pytest

from foundry.archive.outlines import Outline
from foundry.session import early


def outline(role: str = "python-0", primary: tuple[int, ...] = (1, 0), **counters: int) -> Outline:
    return Outline(role, counters, frozenset(primary), frozenset())


def test_the_command_begins_early_with_the_devices_that_it_had() -> None:
    assert early.of_processes([outline(start_as_command=1), outline("child-0")]) == "python-0:0,1"


@pytest.mark.parametrize(
    "counters",
    [
        {},
        {"start_as_command": 1, "start_forks": 1},
        {"start_as_command": 1, "start_changed_variables": 1},
        {"start_as_command": 1, "start_context_flags": 2},
    ],
)
def test_what_stands_against_it(counters: dict[str, int]) -> None:
    assert early.of_processes([outline(**counters)]) == ""


def test_a_child_of_a_fork_anywhere_stands_against_it() -> None:
    assert early.of_processes([outline(start_as_command=1), outline("child-0", start_in_fork=1)]) == ""


def test_without_a_primary_context_there_is_nothing_to_begin() -> None:
    assert early.of_processes([outline(primary=(), start_as_command=1)]) == ""


def test_it_is_noted_beside_the_images(tmp_path: Path) -> None:
    assert early.noted(tmp_path) == ""
    early.note("python-0:0", tmp_path)
    assert early.noted(tmp_path) == "python-0:0"
    (tmp_path / early.NOTED).write_bytes(b"\xff")
    assert early.noted(tmp_path) == ""
