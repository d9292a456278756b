from __future__ import annotations

import random
from dataclasses import replace

import pytest
from helpers.varied import varied_capture

from foundry import diff
from foundry.model import Capture


def captured(seed: int = 3) -> Capture:
    for number in range(seed, seed + 200):
        capture = varied_capture(random.Random(number))
        if any(process.graphs and len(process.launches) for process in capture.processes):
            return capture
    raise AssertionError("no capture with graphs and kernels")


@pytest.fixture
def capture() -> Capture:
    return captured()


def changed(capture: Capture, **fields: object) -> Capture:
    """The capture with fields of the first process that has kernels replaced."""
    target = next(process for process in capture.processes if process.graphs and len(process.launches))
    values = {name: value(target) if callable(value) else value for name, value in fields.items()}
    others = tuple(replace(p, **values) if p is target else p for p in capture.processes)
    return replace(capture, processes=others)


@pytest.mark.parametrize("seed", range(30))
def test_a_capture_does_not_differ_from_itself(seed: int) -> None:
    assert diff.compare(varied_capture(random.Random(seed)), varied_capture(random.Random(seed))) == []


def test_what_says_nothing_about_graphs_is_not_compared(capture: Capture) -> None:
    assert diff.compare(capture, changed(capture, counters={"x": 1}, mode=2, complete=False)) == []


def test_a_process_that_is_gone(capture: Capture) -> None:
    found = diff.compare(capture, replace(capture, processes=()))
    assert [(one.where, one.what, one.before, one.after) for one in found] == [
        (process.role, "process", "present", "none") for process in capture.processes
    ]


def test_a_graph_that_is_gone_is_named(capture: Capture) -> None:
    found = diff.compare(capture, changed(capture, graphs=lambda process: process.graphs[1:]))
    assert [one.what for one in found] == ["graph"]
    assert (found[0].before, found[0].after) == ("present", "none")
    assert str(found[0]).endswith(": graph: present -> none")


def test_another_driver(capture: Capture) -> None:
    found = diff.compare(capture, changed(capture, driver_version=lambda process: process.driver_version + 10))
    assert [one.what for one in found] == ["driver version"]


@pytest.mark.parametrize(("column", "what"), [("grid", "grid"), ("block", "block"), ("shared_bytes", "shared bytes")])
def test_a_launch_that_changed_is_found(capture: Capture, column: str, what: str) -> None:
    def more(process: object) -> object:
        launches = process.launches.copy()  # type: ignore[attr-defined]
        launches[column] = launches[column] + 1
        return launches

    found = diff.compare(capture, changed(capture, launches=more))
    assert found
    assert {one.what for one in found} == {what}
    assert ": node " in found[0].where


def test_parameter_bytes_that_changed_are_found(capture: Capture) -> None:
    def flipped(process: object) -> object:
        return process.parameters ^ 0xFF  # type: ignore[attr-defined]

    found = diff.compare(capture, changed(capture, parameters=flipped))
    assert "parameters" in {one.what for one in found}
