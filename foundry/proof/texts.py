"""Addresses in the metadata that adapters attach to graphs: whole decimal numbers, as JSON writes them.

A witness is left out: what it holds are digests, and what a graph gives is compared by whoever replays it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np

from foundry.diff.places import Places
from foundry.model.moving import number_at

TOKEN = re.compile(rb"[0-9]+|[^0-9]+")
BLANK = re.compile(r"\s*")
WITNESS = "witness"
SMALLEST, LARGEST = 1 << 21, 1 << 57


def moving(texts: tuple[str, str], places: tuple[Places, Places], graphs: tuple[int, int]) -> tuple[list[int], str]:
    """Give the bytes at which addresses that move begin, and why the texts cannot be compared, if so."""
    try:
        sides = [text.encode() for text in texts]
    except UnicodeEncodeError:
        return [], "its metadata is no text"
    if b"\0" in sides[0]:
        return [], "its metadata holds a zero byte"
    tokens = [list(_tokens(text)) for text in texts]
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


def _tokens(text: str) -> Iterator[tuple[int, bytes]]:
    begin, end = _witness(text)
    for part, at in ((text[:begin], 0), (text[end:], len(text[:end].encode()))):
        yield from ((at + match.start(), match[0]) for match in TOKEN.finditer(part.encode()))


def _witness(text: str) -> tuple[int, int]:
    """Tell where the value of the witness begins and ends, if the text is a JSON object that has one."""
    read, at = json.JSONDecoder().raw_decode, 1
    try:
        while text[0:1] == "{":
            key, at = read(text, _after_blanks(text, at))
            begin = _after_blanks(text, _after_blanks(text, at) + 1)
            _, at = read(text, begin)
            if key == WITNESS:
                return begin, at
            at = _after_blanks(text, at)
            if text[at : at + 1] != ",":
                break
            at += 1
    except (ValueError, RecursionError):
        pass
    return len(text), len(text)


def _after_blanks(text: str, at: int) -> int:
    match = BLANK.match(text, at)
    return match.end() if match else at


def _address(token: bytes) -> int | None:
    value = int(token) if token.isdigit() and len(token) <= 20 else 0
    return value if SMALLEST <= value < LARGEST else None


def _spot(places: Places, token: bytes, graph: int):  # type: ignore[no-untyped-def]
    return places.spots(np.array([int(token)], np.uint64), np.array([graph], np.int64))
