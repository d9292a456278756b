"""Words that no launch reads prove nothing, and stand against nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.unread import FIRST, PINNED, SECOND, captured

from foundry.findings import PROOF_MOVED_OTHERWISE, PROOF_NOISE_KNOWN, PROOF_NOT_MOVED
from foundry.proof import Outcome, prove


def proved(folder: Path, word: int, other: int, *, unread: str) -> Outcome:
    """Give the word at byte 24 in the first capture and in the second."""
    sides = [
        captured(folder / str(base), 0, each, base=base, unread=unread)
        for base, each in ((FIRST, word), (SECOND, other))
    ]
    return prove(sides[0][0], sides[1][0], (sides[0][2], sides[1][2]))


@pytest.mark.parametrize(
    ("word", "other", "code"),
    [
        (FIRST + 64, SECOND + 128, PROOF_MOVED_OTHERWISE),
        (FIRST + 64, 12345, PROOF_MOVED_OTHERWISE),
        (FIRST + 64, FIRST + 64, PROOF_NOT_MOVED),
        (PINNED + 8, PINNED + 16, ""),
        (99, PINNED + 16, PROOF_NOISE_KNOWN),
    ],
)
def test_stale_addresses_that_are_not_read_are_no_finding(tmp_path: Path, word: int, other: int, code: str) -> None:
    read = proved(tmp_path / "a", word, other, unread="16:8")
    assert [finding.code for finding in read.findings] == ([code] if code else [])
    outcome = proved(tmp_path / "b", word, other, unread="24:8")
    assert (outcome.findings, outcome.proven, outcome.graphs) == ((), 1, 1)
    assert outcome.noise == (word != other)


def test_a_word_that_moves_is_moved_even_if_nobody_reads_it(tmp_path: Path) -> None:
    outcome = proved(tmp_path, FIRST + 64, SECOND + 64, unread="24:8")
    found = outcome.capture.processes[0].proof
    assert found is not None and found.parameters.tolist() == [(0, 0), (0, 24)]


def test_a_number_beside_old_bytes_is_no_address(tmp_path: Path) -> None:
    outcome = proved(tmp_path, FIRST + 7, SECOND + 8, unread="28:4")
    assert (outcome.findings, outcome.proven, outcome.noise) == ((), 1, 1)
