"""Words that no launch reads stand against no graph, and need nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.unread import ARENA, FIRST, PINNED, captured

from foundry.findings import DANGLING_WORD, FOREIGN_MEMORY, SCRATCH_MEMORY
from foundry.model import Graph


def graph(folder: Path, *words: int, unread: str = "") -> Graph:
    return captured(folder, *words, unread=unread)[0].processes[0].graphs[0]


@pytest.mark.parametrize(("word", "code"), [(PINNED, FOREIGN_MEMORY), (FIRST + ARENA, SCRATCH_MEMORY)])
def test_a_word_that_is_not_read_is_no_reason(tmp_path: Path, word: int, code: str) -> None:
    assert graph(tmp_path / "a", 0, word).reason_code == code
    assert graph(tmp_path / "b", 0, word, unread="16:8").reason_code == code
    assert graph(tmp_path / "c", 0, word, unread="24:8").restorable


@pytest.mark.parametrize("unread", ["24:2", "28:4", "29:1"])
def test_a_word_of_which_half_is_read_is_no_address(tmp_path: Path, unread: str) -> None:
    assert graph(tmp_path / "a", 0, PINNED, unread=unread).restorable


def test_an_address_has_48_bits(tmp_path: Path) -> None:
    assert graph(tmp_path / "a", 0, PINNED, unread="30:2").reason_code == FOREIGN_MEMORY


def test_what_is_not_read_needs_no_memory_and_dangles_nowhere(tmp_path: Path) -> None:
    words = FIRST + 4096, FIRST + (1 << 30)
    assert (graph(tmp_path / "a", *words).references, graph(tmp_path / "a1", *words).dangling_words) == ((0, 1), 1)
    capture, findings, _ = captured(tmp_path / "b", *words, unread="16:16")
    (found,) = capture.processes[0].graphs
    assert (found.references, found.dangling_words) == ((0,), 0)
    assert DANGLING_WORD not in [finding.code for finding in findings]
