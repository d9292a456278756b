"""A wrong pointer is named with graph, node, kernel and place before it is used: any pointer, any wrong target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.verified import BASE, GRAPH, SCRATCH, verified_capture, with_fields, with_table, with_word

from foundry import archive
from foundry.model import Capture
from foundry.verify import Level, Report, verify

Change = Callable[[Capture, int], Capture]


def parameter(number: int, offset: int) -> Change:
    return lambda capture, address: with_word(capture, number, offset, address)


def memset(capture: Capture, address: int) -> Capture:
    return with_table(capture, "memsets", 0, destination=address)


def copied(offset: int) -> Change:
    def change(capture: Capture, address: int) -> Capture:
        copies = capture.processes[0].copies.copy()
        copies[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
        return with_fields(capture, copies=copies)

    return change


POINTERS: dict[str, Change] = {
    "graph `decode` `1`, node 0, kernel `fill`, parameter 0, byte 0": parameter(0, 0),
    "graph `decode` `1`, node 1, kernel `add`, parameter 0, byte 0": parameter(1, 0),
    "graph `decode` `1`, node 1, kernel `add`, parameter 1, byte 8": parameter(1, 8),
    "graph `decode` `1`, node 4 > 0, kernel `fill`, parameter 0, byte 0": parameter(2, 0),
    "graph `decode` `1`, node 4 > 1, kernel `add`, parameter 0, byte 0": parameter(3, 0),
    "graph `decode` `1`, node 4 > 1, kernel `add`, parameter 1, byte 8": parameter(3, 8),
    "graph `decode` `2`, node 0, kernel `fill`, parameter 0, byte 0": parameter(4, 0),
    "graph `decode` `2`, node 1, kernel `add`, parameter 0, byte 0": parameter(5, 0),
    "graph `decode` `2`, node 1, kernel `add`, parameter 1, byte 8": parameter(5, 8),
    "graph `decode` `1`, node 2, byte 0": memset,
    "graph `decode` `1`, node 3, byte 48": copied(48),
    "graph `decode` `1`, node 3, byte 136": copied(136),
}
"""Each word of a graph that can be restored, if it is a pointer, by its place."""
TARGETS = {
    "scratch": SCRATCH,
    "the last byte of scratch": SCRATCH + 4095,
    "freed": BASE + 4096,
    "never allocated": BASE + (1 << 30),
    "behind the last": GRAPH + (1 << 30),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    return verified_capture(tmp_path_factory.mktemp("sound"))


def deep(capture: Capture, path: Path) -> Report:
    archive.write(capture, path, force=True)
    with archive.open_archive(path) as opened:
        return verify(opened, Level.DEEP)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("where", POINTERS)
def test_a_wrong_pointer_is_named_with_its_place(sound: Capture, tmp_path: Path, where: str, target: str) -> None:
    """C43."""
    problems = deep(POINTERS[where](sound, TARGETS[target]), tmp_path / "a.fdry").problems
    told = [problem for problem in problems if problem.code in ("verify-pointer", "verify-dangling-count")]
    assert [str(problem.place) for problem in told] == [f"process `python-0`, {where}"]
    assert told[0].text.startswith(f"{TARGETS[target]:#x} lies in ")
