"""Places the boxes of a drawing: a layered layout for acyclic graphs, in time that stays near linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

ROUNDS = 6
"""Sweeps that bring the boxes of a layer near what they are joined to."""
MOST_BENDS = 20_000
"""Places that long edges may take up; beyond that they are drawn straight."""


@dataclass(frozen=True)
class Size:
    """A box to be placed."""

    width: float
    height: float


@dataclass(frozen=True)
class Place:
    """Where a box went: its upper left corner."""

    x: float
    y: float
    layer: int


@dataclass(frozen=True)
class Layout:
    """Where everything went. `routes` gives, for each edge, the points that it runs through."""

    places: tuple[Place, ...]
    routes: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Give each box the length of the longest way to it. Edges that close a circle are left out."""
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for start, end in edges:
        if start != end:
            after[start].append(end)
            waits[end] += 1
    found = [0] * count
    ready = [box for box in range(count) if not waits[box]]
    done = [False] * count
    rest = 0
    while True:
        while ready:
            box = ready.pop()
            done[box] = True
            for end in after[box]:
                waits[end] -= 1
                if done[end]:
                    continue
                found[end] = max(found[end], found[box] + 1)
                if not waits[end]:
                    ready.append(end)
        while rest < count and done[rest]:
            rest += 1
        if rest == count:
            return found
        ready.append(rest)


def arrange(sizes: Sequence[Size], edges: Sequence[tuple[int, int]], *, gap: Size) -> Layout:
    """Place boxes in layers from top to bottom; `gap` is the room between two of them."""
    level = layers(len(sizes), edges)
    boxes = [*sizes]
    levels = [*level]
    chains = _bends(boxes, levels, edges)
    rows: list[list[int]] = [[] for _ in range(max(levels, default=-1) + 1)]
    for box, row in enumerate(levels):
        rows[row].append(box)
    _order(rows, levels, chains)
    widths = [sum(boxes[box].width for box in row) + gap.width * (len(row) - 1) for row in rows]
    width = max(widths, default=0.0)
    places = [Place(0, 0, 0)] * len(boxes)
    y = 0.0
    for number, line in enumerate(rows):
        x = (width - widths[number]) / 2
        tall = max((boxes[box].height for box in line), default=0.0)
        for box in line:
            places[box] = Place(x, y, number)
            x += boxes[box].width + gap.width
        y += tall + gap.height
    routes = [_route(chain, places, boxes) for chain in chains]
    return Layout(tuple(places[: len(sizes)]), tuple(routes), width, max(y - gap.height, 0.0))


def _bends(boxes: list[Size], levels: list[int], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Give long edges a narrow box in each layer that they cross, and each edge the boxes that it runs through."""
    crossed = sum(max(levels[end] - levels[start] - 1, 0) for start, end in edges)
    chains = []
    for start, end in edges:
        chain = [start]
        if crossed <= MOST_BENDS:
            for row in range(levels[start] + 1, levels[end]):
                chain.append(len(boxes))
                boxes.append(Size(8, 0))
                levels.append(row)
        chains.append([*chain, end])
    return chains


def _order(rows: list[list[int]], levels: list[int], chains: Sequence[Sequence[int]]) -> None:
    above: list[list[int]] = [[] for _ in levels]
    below: list[list[int]] = [[] for _ in levels]
    for chain in chains:
        for start, end in pairwise(chain):
            if levels[start] < levels[end]:
                below[start].append(end)
                above[end].append(start)
    at = [0.0] * len(levels)

    def number(row: list[int]) -> None:
        for index, box in enumerate(row):
            at[box] = (index + 0.5) / len(row)

    for row in rows:
        number(row)
    for turn in range(ROUNDS):
        joined = above if turn % 2 == 0 else below
        for row in rows if turn % 2 == 0 else reversed(rows):
            if len(row) > 1:
                want = {
                    box: sum(at[other] for other in joined[box]) / len(joined[box]) if joined[box] else at[box]
                    for box in row
                }
                row.sort(key=want.__getitem__)
                number(row)


def _route(chain: Sequence[int], places: Sequence[Place], boxes: Sequence[Size]) -> tuple[tuple[float, float], ...]:
    points = []
    for index, box in enumerate(chain):
        middle = places[box].x + boxes[box].width / 2
        bottom = places[box].y + boxes[box].height
        points.append((middle, bottom if index == 0 else places[box].y))
    return tuple(points)
