from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.differing import sample

from foundry.model import Capture
from foundry.session import early


def capture(**counters: int) -> Capture:
    whole = sample()
    process = replace(whole.processes[0], counters=counters)
    return replace(whole, processes=(process,))


def test_the_command_begins_early_with_the_devices_that_it_had() -> None:
    found = capture(start_as_command=1)
    devices = sorted({context.device for context in found.processes[0].contexts if context.primary})
    assert devices
    assert early.of_capture(found) == f"{found.processes[0].role}:{','.join(map(str, devices))}"


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
    assert early.of_capture(capture(**counters)) == ""


def test_a_child_of_a_fork_anywhere_stands_against_it() -> None:
    whole = capture(start_as_command=1)
    child = replace(whole.processes[0], role="child-0", counters={"start_in_fork": 1})
    assert early.of_capture(replace(whole, processes=(*whole.processes, child))) == ""


def test_without_a_primary_context_there_is_nothing_to_begin() -> None:
    whole = capture(start_as_command=1)
    process = replace(whole.processes[0], contexts=())
    assert early.of_capture(replace(whole, processes=(process,))) == ""


def test_it_is_noted_beside_the_images(tmp_path: Path) -> None:
    assert early.noted(tmp_path) == ""
    early.note(capture(start_as_command=1), tmp_path)
    assert early.noted(tmp_path) == early.of_capture(capture(start_as_command=1)) != ""
    (tmp_path / early.NOTED).write_bytes(b"\xff")
    assert early.noted(tmp_path) == ""
