"""The dependencies section of a process: the nodes whose dependencies are in another order than their edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from foundry.archive.columns import Reading
from foundry.archive.text import ContentError
from foundry.model import Group
from foundry.model.tables import Words, changes, frozen


def encode_dependencies(groups: Sequence[Group]) -> bytes:
    """Lay out a DEPENDENCIES section."""
    numbers, nodes, places = [], [], []
    for number, group in enumerate(groups):
        if not len(group.order):
            continue
        plain = np.argsort(group.edges["end"], kind="stable")
        ends = group.edges["end"][plain]
        first = np.searchsorted(ends, ends)
        place = np.zeros(len(plain), "<u4")
        place[plain] = np.arange(len(plain)) - first
        moved = ends[plain != group.order]
        found = moved[changes(moved)]
        told = np.searchsorted(found, ends, side="right") != np.searchsorted(found, ends)
        numbers.append(np.full(len(found), number, "<u4"))
        nodes.append(found)
        places.append(place[group.order[told]])
    rows = sum(map(len, nodes))
    counts = np.array([rows, sum(map(len, places))], "<u4")
    return b"".join(np.ascontiguousarray(column, "<u4").tobytes() for column in (counts, *numbers, *nodes, *places))


def decode_dependencies(data: bytes, groups: Sequence[Group]) -> tuple[Group, ...]:
    """Give the groups the orders that a DEPENDENCIES section tells."""
    reading = Reading(data)
    rows, count = reading.counts(2)
    numbers, nodes, places = (reading.array("<u4", size) for size in (rows, rows, count))
    reading.finish()
    keys = numbers.astype("<u8") << 32 | nodes
    if (keys[1:] <= keys[:-1]).any():
        raise ContentError("dependencies out of order")
    found, at = list(groups), 0
    begins = [*changes(numbers).tolist(), rows]
    for begin, end in pairwise(begins):
        number = int(numbers[begin])
        if number >= len(found):
            raise ContentError(f"dependencies of the group {number}")
        order, used = _order(found[number], nodes[begin:end], places[at:])
        found[number], at = replace(found[number], order=order), at + used
    if at != count:
        raise ContentError("dependencies that no node has")
    return tuple(found)


def _order(group: Group, nodes: Words, places: Words) -> tuple[Words, int]:
    """Give the order of all edges of a group, and how many places it took."""
    order = np.argsort(group.edges["end"], kind="stable").astype("<u4")
    ends = group.edges["end"][order]
    firsts = np.searchsorted(ends, nodes)
    counts = np.searchsorted(ends, nodes, side="right") - firsts
    used = int(counts.sum())
    starts = np.cumsum(counts) - counts
    steps = np.arange(used) - np.repeat(starts, counts)
    mine = places[:used]
    if len(mine) < used or (mine >= np.repeat(counts, counts)).any():
        raise ContentError("dependencies that a node has not")
    moved = mine != steps
    if not len(nodes) or not counts.all() or not np.logical_or.reduceat(moved, starts).all():
        raise ContentError("dependencies that are in no other order")
    base = np.repeat(firsts, counts)
    order[base + steps] = order[base + mine]
    return frozen(order), used
