"""Arguments that are read without typer, and those that are left to it."""

from __future__ import annotations

import pytest

from foundry.cli.plain import read


def flags(*words: str) -> set[str] | None:
    found = read(words, flags=("--early", "--no-early", "--no-contents"), values=(), short={})
    return None if found is None else found.flags


@pytest.mark.parametrize("words", [(), ("--early",), ("--no-early",), ("--early", "--no-contents")])
def test_flags_are_read(words: tuple[str, ...]) -> None:
    assert flags(*words) == set(words)


@pytest.mark.parametrize("words", [("--early", "--no-early"), ("--no-early", "--early"), ("--other",)])
def test_a_flag_and_its_opposite_are_left_to_typer(words: tuple[str, ...]) -> None:
    assert flags(*words) is None
