"""Words that no launch reads are told apart from all judgements by looks."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.differing import examined
from helpers.unread import FIRST, captured

from foundry.diff.report import Kind, Report, Strength

SMALL, OTHER = 3, 4


def difference(folder: Path, word: int, other: int, *, unread: str, unread_after: str | None = None) -> Report:
    """Compare two captures with these words at byte 24."""
    sides = zip("ab", (word, other), (unread, unread if unread_after is None else unread_after), strict=True)
    before, after = (captured(folder / name, 0, each, unread=bytes_)[0] for name, each, bytes_ in sides)
    return examined(before, after)


@pytest.mark.parametrize(("word", "other"), [(SMALL, OTHER), (FIRST + 64, FIRST + 128), (0x7FFD00001238, 0)])
def test_a_word_that_is_not_read_is_noise_whatever_it_is(tmp_path: Path, word: int, other: int) -> None:
    report = difference(tmp_path, word, other, unread="24:8")
    assert report.words == {"unread": 1}
    assert report.verdict == Strength.NOISE


def test_a_word_that_is_read_is_different(tmp_path: Path) -> None:
    report = difference(tmp_path, SMALL, OTHER, unread="16:8")
    assert report.words == {"different": 1}
    assert report.verdict == Strength.DIFFERENT


def test_of_a_word_that_is_half_read_that_half_counts(tmp_path: Path) -> None:
    assert difference(tmp_path / "a", 7 | 0x1111 << 32, 7 | 0x2222 << 32, unread="28:4").words == {"unread": 1}
    report = difference(tmp_path / "b", 7 | 0x1111 << 32, 8 | 0x2222 << 32, unread="28:4")
    assert report.words == {"different": 1}
    (change,) = [change for change in report.changes[Kind.NODES] if change.strength == Strength.DIFFERENT]
    assert (change.before, change.after) == ("7", "8")


def test_it_must_be_so_on_both_sides(tmp_path: Path) -> None:
    report = difference(tmp_path, SMALL, OTHER, unread="24:8", unread_after="16:8")
    assert "unread" not in report.words
