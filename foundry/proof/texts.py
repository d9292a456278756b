"""Addresses in the metadata that adapters attach to graphs: whole decimal numbers, as JSON writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from foundry.diff.places import Places
from foundry.model.moving import number_at

TOKEN = re.compile(rb"[0-9]+|[^0-9]+")
SMALLEST, LARGEST = 1 << 21, 1 << 57


def moving(texts: tuple[str, str], places: tuple[Places, Places], graphs: tuple[int, int]) -> tuple[list[int], str]:
    """Give the bytes at which addresses that move begin, and why the texts cannot be compared, if so."""
    try:
        sides = [text.encode() for text in texts]
    except UnicodeEncodeError:
        return [], "its metadata is no text"
    if b"\0" in sides[0]:
        return [], "its metadata holds a zero byte"
    tokens = [list(_tokens(side)) for side in sides]
    if len(tokens[0]) != len(tokens[1]):
        return [], "its metadata differs in the second capture"
    found = []
    for (at, one), (_, other) in zip(*tokens, strict=True):
        if one == other:
            if _address(one) is not None and _spot(places[0], one, graphs[0]).ordinal[0] >= 0:
                return [], f"its metadata names memory at byte {at}, and is the same in the second capture"
            continue
        if _address(one) is None or _address(other) is None:
            return [], f"its metadata differs in the second capture, at byte {at}"
        spots = [_spot(side, word, graph) for side, word, graph in zip(places, (one, other), graphs, strict=True)]
        if not spots[0].alike(spots[1])[0] or number_at(sides[0], at) < 0:
            return [], f"its metadata differs in the second capture, at byte {at}"
        found.append(at)
    return found, ""


def _tokens(text: bytes) -> Iterator[tuple[int, bytes]]:
    return ((match.start(), match[0]) for match in TOKEN.finditer(text))


def _address(token: bytes) -> int | None:
    value = int(token) if token.isdigit() and len(token) <= 20 else 0
    return value if SMALLEST <= value < LARGEST else None


def _spot(places: Places, token: bytes, graph: int):  # type: ignore[no-untyped-def]
    return places.spots(np.array([int(token)], np.uint64), np.array([graph], np.int64))
