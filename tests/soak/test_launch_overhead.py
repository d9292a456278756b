"""The hook adds next to nothing to a launch, on the simulator; `benchmarks/launch_overhead.py` measures it anywhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.native_build import sanitized

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import launch_overhead


@pytest.mark.skipif(sanitized(), reason="a sanitizer's own work is not what is measured")
def test_a_launch_takes_no_longer_than_the_limit_allows(tmp_path: Path) -> None:
    ways = launch_overhead.measure(tmp_path, simulated=True, runs=2, rounds=16)
    assert tuple(ways) == launch_overhead.WAYS
    assert launch_overhead.failures(ways, "least") == []
    for call in launch_overhead.LAUNCHES:
        assert ways["plain"][call]["nanoseconds"]["median"] > 0


def test_what_is_over_the_limit_is_named() -> None:
    ways = {
        way: {call: {"added_nanoseconds": {"median": 5.0}} for call in launch_overhead.LAUNCHES}
        for way in launch_overhead.WAYS
    }
    assert launch_overhead.failures(ways) == []
    ways["restore"]["graph_launch"]["added_nanoseconds"]["median"] = 60.0
    assert launch_overhead.failures(ways) == ["restore, graph_launch: 60 ns are added, the limit is 60 ns"]


def test_both_orders_count_alike() -> None:
    """What comes first in a round may be slower for that alone; over two rounds that cancels out."""
    text = "launch 9 9 0 0\nwarm 0 0 0 0\n" + "launch 30 20 5 3\nlaunch 20 30 5 3\n" * 3
    assert launch_overhead.timings(text)["launch"] == {
        "nanoseconds": 25, "driver_nanoseconds": 25, "added_nanoseconds": 0,
        "added_instructions": 2, "driver_instructions": 3,
    }  # fmt: skip
