"""How much memory stood at each step of a process, by arena, with the steps at which graphs were made."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foundry.model import NONE, Arena, Process
from foundry.page.markup import Markup, number, tag, trusted
from foundry.page.quantities import count, size

MOST_POINTS = 400
_WIDE, _HIGH = 1000.0, 160.0


def growth(process: Process) -> Markup | None:
    """Draw the curve; None where there is nothing to draw."""
    table = process.allocations
    if len(table) < 2:
        return None
    steps = _steps(process)
    points = _thinned(steps)
    curves = [_standing(process, arena, points) for arena in Arena]
    changes = np.unique(np.concatenate([table["born"], table["died"][table["died"] != NONE]]))
    tallest = int(max(sum(_standing(process, arena, changes) for arena in Arena).max(), 1))  # type: ignore[union-attr]
    paths, below = [], np.zeros(len(points))
    for arena, curve in zip(Arena, curves, strict=True):
        above = below + curve
        if curve.any():
            paths.append(_area(below, above, points, steps, tallest, f"g-{arena.name.lower()}"))
        below = above
    marks = [
        tag("line", x1=x, x2=x, y1=_HIGH, y2=_HIGH + 10, class_="g-mark")
        for x in sorted({round(graph.step / steps * _WIDE, 1) for graph in process.graphs})
    ]
    text = (
        f"Memory standing over {count(steps, 'step')} (allocations, frees and graphs, in order). "
        f"Highest: {size(tallest)}. Marks below: the graphs."
    )
    picture = tag(
        "svg",
        tag("title", text),
        paths,
        marks,
        viewBox=f"0 0 {number(_WIDE)} {number(_HIGH + 10)}",
        preserveAspectRatio="none",
        role="img",
        class_="growth",
    )
    key = tag(
        "ul",
        [
            tag("li", tag("span", class_=f"swatch g-{arena.name.lower()}"), f"{arena.name.lower()} arena")
            for arena, curve in zip(Arena, curves, strict=True)
            if curve.any()
        ],
        class_="legend",
    )
    return tag("figure", tag("h3", "How it grew"), picture, tag("figcaption", text), key)


def _steps(process: Process) -> int:
    table = process.allocations
    died = table["died"][table["died"] != NONE]
    last = max(int(table["born"].max()), int(died.max()) if len(died) else 0)
    return max(last, *(graph.step for graph in process.graphs), 0) + 1 if process.graphs else last + 1


def _standing(process: Process, arena: Arena, steps: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Sum up what stood after each of the steps. Steps are as large as an archive says, so nothing is sized by them."""
    table = process.allocations[process.allocations["arena"] == arena]
    gone = table[table["died"] != NONE]
    return _sums(table["born"], table["taken"], steps) - _sums(gone["died"], gone["taken"], steps)


def _sums(at: npt.NDArray[Any], sizes: npt.NDArray[Any], steps: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    order = np.argsort(at, kind="stable")
    sums = np.concatenate([np.zeros(1), np.cumsum(sizes[order].astype(np.float64))])
    found: npt.NDArray[np.float64] = sums[np.searchsorted(at[order], steps, side="right")]
    return found


def _thinned(steps: int) -> npt.NDArray[np.int64]:
    return np.unique(np.linspace(0, steps - 1, min(steps, MOST_POINTS)).astype(np.int64))


def _area(
    below: npt.NDArray[np.float64],
    above: npt.NDArray[np.float64],
    points: npt.NDArray[np.int64],
    steps: int,
    tallest: int,
    style: str,
) -> Markup:
    def place(step: int, value: float) -> str:
        return f"{number(round(step / steps * _WIDE, 1))} {number(round(_HIGH - value / tallest * (_HIGH - 6), 1))}"

    ends = [*points[1:].tolist(), steps]
    top, bottom = [], []
    for step, end, high, low in zip(points.tolist(), ends, above.tolist(), below.tolist(), strict=True):
        top += [place(step, high), place(end, high)]
        bottom += [place(step, low), place(end, low)]
    return tag("path", d=trusted("M" + "L".join([*top, *reversed(bottom)]) + "Z"), class_=style)
