from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import pytest
from helpers.proofs import NOTHING_PROVEN
from helpers.varied import varied_capture

from foundry import diff
from foundry.diff import scope
from foundry.model import Capture


def captured(seed: int = 3) -> Capture:
    for number in range(seed, seed + 200):
        capture = varied_capture(random.Random(number))
        if any(process.graphs and len(process.launches) for process in capture.processes):
            return capture
    raise AssertionError("no capture with graphs and kernels")


def having(table: str) -> Capture:
    """A capture whose first process that has kernels has such nodes, too."""
    for number in range(3, 500):
        capture = varied_capture(random.Random(number))
        process = next((one for one in capture.processes if one.graphs and len(one.launches)), None)
        if process is not None and len(getattr(process, table)):
            return capture
    raise AssertionError(f"no capture with {table}")


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


def test_every_field_of_the_model_is_compared_or_has_a_reason_why_not() -> None:
    for kind, compared in scope.COMPARED.items():
        left_out = scope.NOT_COMPARED[kind]
        assert sorted([*compared, *left_out]) == sorted(field.name for field in fields(kind)), kind
        assert all(left_out.values())


@pytest.mark.parametrize("seed", range(30))
def test_a_change_of_what_is_not_compared_is_no_difference(seed: int) -> None:
    """Each of these is given another value; `in_graphs` and `findings` decide what else is looked at."""
    before = varied_capture(random.Random(seed))
    processes = tuple(
        replace(
            other(process),
            devices=tuple(map(other, process.devices)),
            images=tuple(map(other, process.images)),
            graphs=tuple(map(other, process.graphs)),
        )
        for process in before.processes
    )
    assert diff.compare(before, replace(other(before), processes=processes)) == []


def other(thing: Any) -> Any:
    """The thing with other values where nothing is compared, as far as these are numbers, words or lists."""
    values = {name: getattr(thing, name) for name in scope.NOT_COMPARED[type(thing)] if name != "in_graphs"}
    changed: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            changed[name] = not value
        elif isinstance(value, int):
            changed[name] = value + 1
        elif isinstance(value, (str, bytes)):
            changed[name] = value + value[:1]
        elif isinstance(value, tuple):
            changed[name] = ()
        elif isinstance(value, dict):
            changed[name] = {}
        elif name == "proof":
            changed[name] = NOTHING_PROVEN
    assert changed.keys() == values.keys()
    return replace(thing, **changed)


@pytest.mark.parametrize(("name", "value"), [("blob", 0), ("api", 9), ("options", ((1, 2),))])
def test_an_image_that_graphs_use_is_compared(capture: Capture, name: str, value: object) -> None:
    capture = replace(capture, blobs=(b"other", *capture.blobs))
    what = {"blob": "code"}.get(name, name)

    def images(process: Any) -> object:
        return tuple(replace(image, in_graphs=True, **{name: value}) for image in process.images)

    def plain(process: Any) -> object:
        return tuple(replace(image, in_graphs=True, blob=1) for image in process.images)

    before = changed(capture, images=plain)
    after = changed(before, images=images)
    assert {one.what for one in diff.compare(before, after)} == {what}


@pytest.mark.parametrize(("height", "what"), [(1, set()), (2, {"memset"})])
def test_a_pitch_counts_where_there_is_a_second_row(height: int, what: set[str]) -> None:
    capture = having("memsets")

    def rows(pitch: int) -> Any:
        def of(process: Any) -> object:
            table = process.memsets.copy()
            table["height"], table["pitch"] = height, pitch
            return table

        return of

    found = diff.compare(changed(capture, memsets=rows(0)), changed(capture, memsets=rows(512)))
    assert {one.what for one in found} == what


@pytest.mark.parametrize(
    ("height", "depth", "row", "plane", "what"),
    [
        (1, 1, 0, 0, set()),
        (2, 1, 0, 0, {"copy"}),
        (1, 2, 0, 0, {"copy"}),
        (1, 1, 1, 0, {"copy"}),
        (1, 1, 0, 1, {"copy"}),
    ],
)
@pytest.mark.parametrize("side", [0, 11])
def test_a_pitch_of_a_copy_counts_beyond_the_first_row(
    side: int, height: int, depth: int, row: int, plane: int, what: set[str]
) -> None:
    capture = having("copies")

    def rows(pitch: int) -> Any:
        def of(process: Any) -> object:
            words = process.copies.copy().view("<u8").reshape(-1, 25)
            words[:, 23], words[:, 24] = height, depth
            for each in (0, 11):
                words[:, each + 1], words[:, each + 2], words[:, each + 9] = 0, 0, 0
            words[:, side + 1], words[:, side + 2], words[:, side + 9] = row, plane, pitch
            return words.reshape(-1).view(process.copies.dtype)

        return of

    found = diff.compare(changed(capture, copies=rows(0)), changed(capture, copies=rows(512)))
    assert {one.what for one in found} == what


def test_an_image_that_no_graph_uses_is_not_compared(capture: Capture) -> None:
    def unused(process: Any) -> object:
        extra = replace(process.images[0], key=bytes(32), instance=7, in_graphs=False)
        return (*process.images, extra)

    assert diff.compare(capture, changed(capture, images=unused)) == []


def test_function_attributes_are_compared(capture: Capture) -> None:
    def kernels(process: Any) -> object:
        return tuple(replace(kernel, attributes=((8, 77),)) for kernel in process.kernels)

    assert {one.what for one in diff.compare(capture, changed(capture, kernels=kernels))} == {"function attributes"}


def test_the_memory_of_a_graph_is_compared_by_where_it_lies(capture: Capture) -> None:
    def moved(process: Any) -> object:
        table = process.allocations.copy()
        table["size"] += 1
        return table

    found = {one.what for one in diff.compare(capture, changed(capture, allocations=moved))}
    referring = any(graph.references for process in capture.processes for graph in process.graphs)
    assert found == ({"memory"} if referring else set())
