from __future__ import annotations

import json
from dataclasses import replace

import pytest
from helpers.differing import BASE, OTHER_BASE, examined, sample

from foundry.diff.report import Change, Kind, Report, Strength
from foundry.model import Capture


def with_metadata(capture: Capture, text: str) -> Capture:
    process = capture.processes[0]
    first, *others = process.graphs
    graphs = (replace(first, metadata=text), *others)
    return replace(capture, processes=(replace(process, graphs=graphs),))


def compared(before: object, after: object, base: int = BASE) -> tuple[Report, list[Change]]:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in (before, after)]
    report = examined(with_metadata(sample(), texts[0]), with_metadata(sample(base), texts[1]))
    return report, list(report.strongest_first(Kind.GRAPHS))


def test_addresses_that_moved_with_their_memory_are_relocation() -> None:
    """The memory of the graph's output, the start of it and 8 bytes into it."""
    sides = [{"outputs": [base + 0x8000000000, base + 0x8000000008], "batch": 8} for base in (BASE, OTHER_BASE)]
    report, (change,) = compared(*sides, OTHER_BASE)
    assert (report.verdict, change.strength, change.count) == (Strength.RELOCATION, Strength.RELOCATION, 2)
    assert change.what == "metadata at `outputs.0`"


@pytest.mark.parametrize(
    ("after", "path"),
    [
        ({"outputs": [OTHER_BASE + 0x8000000008], "batch": 8}, "outputs.0"),
        ({"outputs": [OTHER_BASE + 0x8000000000], "batch": 9}, "batch"),
        ({"outputs": [OTHER_BASE + 0x8000000000, 1], "batch": 8}, "outputs"),
    ],
)
def test_anything_else_is_different(after: object, path: str) -> None:
    report, (change,) = compared({"outputs": [BASE + 0x8000000000], "batch": 8}, after, OTHER_BASE)
    assert (report.verdict, change.what) == (Strength.DIFFERENT, f"metadata at `{path}`")


def test_text_is_compared_as_such() -> None:
    _, (change,) = compared("batch 8", "batch 9")
    assert (change.what, change.before, change.after) == ("metadata", "batch 8", "batch 9")


def test_the_same_json_in_another_form_is_told() -> None:
    _, (change,) = compared('{"a":1}', '{"a": 1}')
    assert (change.what, change.strength) == ("metadata", Strength.DIFFERENT)
    _, (change,) = compared("[true]", "[1]")
    assert (change.what, change.before, change.after) == ("metadata at `0`", "true", "1")


@pytest.mark.parametrize("deep", ["[" * 500 + "1" + "]" * 500, "[" * 100_000, '{"a":' * 300 + "1" + "}" * 300])
def test_what_nests_deep_does_no_harm(deep: str) -> None:
    report, _ = compared(deep, deep.replace("1", "2") if "1" in deep else deep + "[")
    assert report.verdict == Strength.DIFFERENT
