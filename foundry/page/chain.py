"""A topology in the order of its nodes, with what repeats folded: before, n times the same, after."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foundry.model import Group
from foundry.page.markup import Markup, tag
from foundry.page.nodes import Nodes
from foundry.page.quantities import count
from foundry.page.repeats import longest_repeat

MOST_CELLS = 160


def is_chain(group: Group) -> bool:
    """Tell whether each node but the first depends on exactly the one before it."""
    edges = group.edges
    if len(group.nodes) < 1 or len(edges) != len(group.nodes) - 1:
        return False
    starts = np.sort(edges["start"])
    return bool((starts == np.arange(len(edges))).all() and (edges["end"] == edges["start"] + 1).all())


def ribbon(numbers: npt.NDArray[np.int64], nodes: Nodes) -> Markup:
    """Draw the nodes of a group as cells."""
    repeat = longest_repeat(numbers)
    if repeat is None:
        return tag("div", _run(numbers, 0, nodes, "nodes"), class_="ribbon")
    before, after = numbers[: repeat.start], numbers[repeat.end :]
    piece = numbers[repeat.start : repeat.start + repeat.piece]
    times = tag("b", f"{repeat.times} \u00d7", class_="times")
    folded = tag(
        "div",
        times,
        _run(piece, repeat.start, nodes, f"{count(repeat.piece, 'node')}, {repeat.times} times"),
        class_="fold",
    )
    return tag(
        "div",
        _run(before, 0, nodes, "before") if len(before) else None,
        folded,
        _run(after, repeat.end, nodes, "after") if len(after) else None,
        class_="ribbon",
    )


def ribbon_text(numbers: npt.NDArray[np.int64]) -> str:
    """Say in words what the ribbon shows."""
    repeat = longest_repeat(numbers)
    if repeat is None:
        return f"{count(len(numbers), 'node')}, no long repeat"
    parts = [count(repeat.start, "node")] if repeat.start else []
    parts.append(f"{repeat.times} times the same {repeat.piece}" if repeat.piece > 1 else f"{repeat.times} alike")
    if len(numbers) > repeat.end:
        parts.append(f"{len(numbers) - repeat.end} at the end")
    return ", then ".join(parts)


def _run(numbers: npt.NDArray[np.int64], first: int, nodes: Nodes, what: str) -> Markup:
    cells = []
    for at, number in enumerate(numbers[:MOST_CELLS].tolist(), first):
        kind = nodes.kinds[number]
        cells.append(
            tag("i", class_=f"k{nodes.palette.pixel(kind.family, kind.variant)}", title=f"node {at}: {kind.label}")
        )
    left = len(numbers) - MOST_CELLS
    more = tag("span", f"… {left:,} more", class_="more") if left > 0 else None
    words = f"{count(len(numbers), 'node')} ({what})"
    return tag("div", cells, more, class_="cells", role="img", aria_label=words)
