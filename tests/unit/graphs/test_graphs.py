from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from helpers.fake_hook import FakeHook

from foundry import graphs
from foundry.capi import Mode
from foundry.graphs import GraphSet, difference


class Program:
    """Counts what it is asked to do."""

    def __init__(self, hook: FakeHook) -> None:
        self.hook = hook
        self.done: list[str] = []

    def warm_up(self) -> None:
        self.done.append(f"warm up, scratch {self.hook.scratch_depth}")

    def capture(self) -> Callable[[int], object]:
        self.done.append("capture")
        self.hook.instantiate()
        return lambda stream: self.done.append(f"launch on {stream}")

    def get(self, graph_set: GraphSet, key: object, **inputs: Any) -> graphs.Graph:
        return graph_set.capture_or_restore(key, warm_up=self.warm_up, capture=self.capture, inputs=inputs)


def captured(**inputs: Any) -> dict[tuple[str, str], str | None]:
    hook = FakeHook(Mode.CAPTURE)
    Program(hook).get(GraphSet("decode", hook=hook), 8, **inputs)
    return hook.archive


def test_a_plain_start_warms_up_and_captures() -> None:
    hook = FakeHook()
    program = Program(hook)
    graph = program.get(GraphSet("decode", hook=hook), 8, pointer=1)
    graph.launch(5)
    assert program.done == ["warm up, scratch 0", "capture", "launch on 5"]
    assert (graph.restored, graph.reason) == (False, None)
    assert not any("scratch" in event or "label" in event.split()[0] for event in hook.events)


def test_a_capture_marks_its_warm_up_and_names_its_graph() -> None:
    hook = FakeHook(Mode.CAPTURE)
    program = Program(hook)
    program.get(GraphSet("decode", hook=hook), 8, pointer=0x400000000000, sizes=(1, 2))
    assert program.done == ["warm up, scratch 1", "capture"]
    assert hook.events == [
        "scratch begin decode/8 warm-up", "scratch end", "label decode/8", "instantiate labelled", "label end",
    ]  # fmt: skip
    metadata = json.loads(hook.archive["decode", "8"] or "")
    assert metadata["inputs"] == {"pointer": 0x400000000000, "sizes": [1, 2]}
    assert (hook.totals[graphs.WARM_UPS_RUN], hook.totals[graphs.CAPTURES_RUN]) == (1, 1)


def test_a_restore_runs_neither_warm_up_nor_capture() -> None:
    hook = FakeHook(Mode.RESTORE, captured(pointer=1, sizes=(1, 2)))
    program = Program(hook)
    graph = program.get(GraphSet("decode", hook=hook), "8", pointer=1, sizes=(1, 2))
    graph.launch(9)
    assert program.done == []
    assert graph.restored
    assert hook.events == ["wait 1000", "launch 1000 on 9"]
    assert hook.totals[graphs.WARM_UPS_SKIPPED] == hook.totals[graphs.CAPTURES_SKIPPED] == 1
    assert hook.totals.get(graphs.WARM_UPS_RUN, 0) == hook.totals.get(graphs.CAPTURES_RUN, 0) == 0
    assert hook.totals[graphs.BLOCKED] > 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pointer": 2}, "pointer: recorded 1, found 2"),
        ({"sizes": (1, 3)}, r"sizes\[1\]: recorded 2, found 3"),
        ({"more": 1}, "recorded"),
        ({"pointer": True}, "pointer: recorded 1, found true"),
    ],
)
def test_other_inputs_are_captured_anew_with_the_reason(change: dict[str, Any], reason: str) -> None:
    inputs = {"pointer": 1, "sizes": (1, 2)}
    hook = FakeHook(Mode.RESTORE, captured(**inputs))
    program = Program(hook)
    graph_set = GraphSet("decode", hook=hook)
    graph = program.get(graph_set, 8, **{**inputs, **change})
    graph.launch(1)
    assert not graph.restored
    assert program.done == ["warm up, scratch 1", "capture", "launch on 1"]
    assert re.search(reason, graph.reason or "")
    assert graph_set.reasons == {"8": graph.reason}
    assert hook.given_up == {"8": graph.reason}
    assert "wait 1000" not in hook.events


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (None, "no metadata"),
        ("", "no metadata"),
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"refused": "a host function"}', "a host function"),
        ("{}", "recorded null"),
    ],
)
def test_metadata_that_says_nothing_is_not_believed(metadata: str | None, reason: str) -> None:
    hook = FakeHook(Mode.RESTORE, {("decode", "8"): metadata})
    graph = Program(hook).get(GraphSet("decode", hook=hook), 8, pointer=1)
    assert not graph.restored
    assert reason in (graph.reason or "")


@pytest.mark.parametrize("call", ["find", "wait"])
def test_what_the_hook_cannot_give_is_captured(call: str) -> None:
    hook = FakeHook(Mode.RESTORE, captured(pointer=1))
    hook.unavailable = {call: "range taken"}
    graph = Program(hook).get(GraphSet("decode", hook=hook), 8, pointer=1)
    assert (graph.restored, graph.reason) == (False, "range taken")
    assert hook.totals[graphs.CAPTURES_RUN] == 1


def test_a_reason_is_logged_once_a_set(caplog: pytest.LogCaptureFixture) -> None:
    hook = FakeHook(Mode.RESTORE)
    hook.unavailable = {"find": "range taken"}
    graph_set = GraphSet("decode", hook=hook)
    with caplog.at_level(logging.WARNING, "foundry"):
        for key in (4, 2, 1):
            Program(hook).get(graph_set, key)
    assert len(caplog.records) == 1
    assert len(graph_set.reasons) == 3


def test_a_capture_that_fails_leaves_no_label_and_no_phase_behind() -> None:
    hook = FakeHook(Mode.CAPTURE)
    graph_set = GraphSet("decode", hook=hook)

    def fail() -> Callable[[int], object]:
        hook.instantiate()
        raise RuntimeError("capture failed")

    with pytest.raises(RuntimeError):
        graph_set.capture_or_restore(1, capture=fail)
    assert (hook.label, hook.scratch_depth) == (None, 0)
    assert hook.archive == {("decode", "1"): None}

    def fail_warm_up() -> None:
        raise RuntimeError("warm-up failed")

    with pytest.raises(RuntimeError):
        graph_set.capture_or_restore(2, warm_up=fail_warm_up, capture=fail)
    assert hook.scratch_depth == 0


def test_a_key_is_held_once() -> None:
    hook = FakeHook()
    graph_set = GraphSet("decode", hook=hook)
    Program(hook).get(graph_set, 8)
    with pytest.raises(ValueError, match="already in graph set 'decode'"):
        Program(hook).get(graph_set, "8")


def test_commit_reaches_the_hook_and_its_failure_is_only_told(caplog: pytest.LogCaptureFixture) -> None:
    hook = FakeHook(Mode.CAPTURE)
    graphs.commit(hook)
    assert hook.events == ["commit"]
    hook.unavailable = {"commit": "disk full"}
    graphs.commit(hook)
    assert "disk full" in caplog.text
    graphs.commit(FakeHook())


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, None),
        (1, 1.0, "value: recorded 1, found 1.0"),
        ({"a": 1}, {"b": 1}, 'value: recorded {"a": 1}, found {"b": 1}'),
        ([[1], [2]], [[1], [3]], "[1][0]: recorded 2, found 3"),
        ([1], [1, 2], "value: recorded [1], found [1, 2]"),
    ],
)
def test_the_first_difference_is_named(one: object, two: object, expected: str | None) -> None:
    assert difference(one, two) == expected
