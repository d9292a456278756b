"""Two captures of one real program: equal up to noise, and any constant or grid that changed is found among it.

FOUNDRY_DIFF_PAIR names the two archives, with a colon between; without it there is nothing to try.
"""

from __future__ import annotations

import os
import random
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.differing import examined

from foundry import archive
from foundry.diff.flat import Flat
from foundry.diff.report import Kind, Report, Strength
from foundry.model import Capture, Process

PAIR = os.environ.get("FOUNDRY_DIFF_PAIR", "")
pytestmark = [pytest.mark.skipif(not PAIR, reason="no pair of captures is given"), pytest.mark.timeout(600)]
ROUNDS = 20


@pytest.fixture(scope="module")
def pair() -> tuple[Capture, Capture]:
    before, after = PAIR.split(":")
    return archive.read(before), archive.read(after)


def nodes_verdict(report: Report) -> Strength:
    """The verdict without the command line, which may name another file."""
    return max(strength for kind, counts in report.counts.items() if kind != Kind.FINGERPRINT for strength in counts)


def test_equal_up_to_noise(pair: tuple[Capture, Capture]) -> None:
    report = examined(*pair)
    assert nodes_verdict(report) == Strength.NOISE, report.words
    assert "different" not in report.words


def constants(left: Process, right: Process, wanted: Any) -> Any:
    """Where words stand in columns in which no launch differs, among those wanted."""
    flat = Flat(left, np.append(np.arange(len(left.kernels)), -1))
    rows = np.flatnonzero(flat.owns("kernel", np.arange(len(flat.nodes))))
    starts = flat.blocks[:-1]
    sizes = -(-flat.nodes["parameter_size"][rows].astype(np.int64) // 8)
    at = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    within = at - np.repeat(starts, sizes)
    column = np.repeat(flat.kernel[rows], sizes) * 10_000 + within
    words = [side.parameters.view("<u8")[at] for side in (left, right)]
    clean = ~np.isin(column, column[words[0] != words[1]]) & wanted(words[0])
    inside = {
        number
        for number in np.unique(column[clean]).tolist()
        if any(
            begin <= number % 10_000 * 8 and number % 10_000 * 8 + 4 <= begin + size
            for begin, size in left.kernels[number // 10_000].parameters
        )
    }
    return at[clean & np.isin(column, list(inside))]


def planted(capture: Capture, at: int, word: int) -> Capture:
    process = capture.processes[0]
    words = process.parameters.copy().view("<u8")
    words[at] = word
    return replace(capture, processes=(replace(process, parameters=words.view(np.uint8)),))


@pytest.mark.parametrize("change", [1, -1, 0x100])
def test_a_constant_that_changed_is_different(pair: tuple[Capture, Capture], change: int) -> None:
    before, after = pair
    rng = random.Random(change)
    places = constants(before.processes[0], after.processes[0], lambda words: (words > 0) & (words < 1 << 20))
    for _ in range(ROUNDS):
        at = int(rng.choice(places))
        word = int(after.processes[0].parameters.view("<u8")[at])
        report = examined(before, planted(after, at, word + change & 0xFFFFFFFF))
        assert report.words.get("different") == 1, (at, word)
        assert nodes_verdict(report) == Strength.DIFFERENT


def test_a_float_that_changed_is_different(pair: tuple[Capture, Capture]) -> None:
    before, after = pair
    rng = random.Random(5)
    places = constants(before.processes[0], after.processes[0], lambda words: (words > 0) & (words < 1 << 20))
    bits = [struct.unpack("<I", struct.pack("<f", 10 ** rng.uniform(-7, 0)))[0] for _ in range(2 * ROUNDS)]
    for one, other in zip(bits[:ROUNDS], bits[ROUNDS:], strict=True):
        at = int(rng.choice(places))
        report = examined(planted(before, at, one), planted(after, at, other))
        assert report.words.get("different") == 1, (at, hex(one), hex(other))


def test_a_grid_that_changed_is_different(pair: tuple[Capture, Capture]) -> None:
    before, after = pair
    process = after.processes[0]
    rng = random.Random(7)
    for _ in range(ROUNDS):
        launches = process.launches.copy()
        launches["grid"][rng.randrange(len(launches)), 0] += 1
        report = examined(before, replace(after, processes=(replace(process, launches=launches),)))
        assert nodes_verdict(report) == Strength.DIFFERENT
        assert "different" in {strength.word for strength in report.counts[Kind.NODES]}
