"""The adapters' metadata of graphs. Where it is JSON, numbers in it may be device addresses, which move with memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from foundry.diff.places import Places
from foundry.diff.report import Change, Kind, Strength

LONGEST_TOLD = 200
SMALLEST_ADDRESS, LARGEST_ADDRESS = 1 << 21, 1 << 57

Difference = tuple[str, Any, Any]
"""A path in a document, and the two values there."""


def metadata_changes(
    place: str, texts: tuple[str, str], places: tuple[Places, Places], graphs: tuple[int, int]
) -> Iterator[Change]:
    """Compare the metadata of two graphs: its first difference that is no address which moved, else the first."""
    if texts[0] == texts[1]:
        return
    found = list(_walk("", _decoded(texts[0]), _decoded(texts[1])))
    if not found:  # the same JSON, written in another way
        found = [("", texts[0], texts[1])]
    real = [difference for difference in found if not _moved(difference, places, graphs)]
    path, before, after = (real or found)[0]
    yield Change(
        Kind.GRAPHS,
        place,
        f"metadata at `{path[1:]}`" if path else "metadata",
        _text(before),
        _text(after),
        Strength.DIFFERENT if real else Strength.RELOCATION,
        len(real or found),
    )


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _walk(path: str, before: Any, after: Any) -> Iterator[Difference]:
    """Go through what two documents have at the same paths, without recursion: they may nest as deep as they like."""
    waiting = [(path, before, after)]
    while waiting:
        path, before, after = waiting.pop()
        if isinstance(before, dict) and isinstance(after, dict) and list(before) == list(after):
            waiting += [(f"{path}.{name}", before[name], after[name]) for name in reversed(before)]
        elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            waiting += [(f"{path}.{at}", before[at], after[at]) for at in reversed(range(len(before)))]
        elif type(before) is not type(after) or _differ(before, after):
            yield path, before, after


def _differ(before: Any, after: Any) -> bool:
    try:
        return bool(before != after)
    except RecursionError:
        return True


def _moved(difference: Difference, places: tuple[Places, Places], graphs: tuple[int, int]) -> bool:
    """Tell whether both values are addresses of the same place in memory."""
    _, *values = difference
    if not all(type(value) is int and SMALLEST_ADDRESS <= value < LARGEST_ADDRESS for value in values):
        return False
    spots = [
        side.spots(np.array([value], np.uint64), np.array([graph], np.int64))
        for side, value, graph in zip(places, values, graphs, strict=True)
    ]
    return bool(spots[0].alike(spots[1])[0])


def _text(value: Any) -> str:
    if isinstance(value, str):
        told = value or "empty"
    else:
        try:
            told = json.dumps(value, ensure_ascii=False)
        except RecursionError:
            told = "nested too deep to show"
    return told if len(told) <= LONGEST_TOLD else f"{told[:LONGEST_TOLD]}… ({len(told):,} characters)"
