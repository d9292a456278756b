"""Draw the kept results: from `results/*.json` alone, into `charts/*.svg`.

    python benchmarks/charts.py [--results FOLDER] [--out FOLDER]

A chart whose result is not kept is not drawn, and nothing is drawn that was not measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measuring import results
from measuring.drawing import PALE, Drawing, ticks
from measuring.figures import BYTES, SECONDS, amount

CHARTS = results.BENCHMARKS / "charts"
LEFT, RIGHT, TOP = 150, 720, 100
ROW, BAR = 56, 30
PARTS = ("kernel images", "parameters of launches", "everything else")
WAYS = {
    "plain": ("plain torch", ""),
    "peer": ("peer", ""),
    "restored without early start": ("foundry restore", "--no-early"),
    "restored": ("foundry restore", ""),
}
"""Ways of a whole start in the order in which they are drawn, and their names in two lines."""
MOMENTS = ("interpreter", "imports", "context", "modules", "weights", "graphs")
FIRST_TOKEN = "first token"
SHORTEST = 0.3
"""The least width of a part that is drawn."""
MANY_GRAPHS = {
    "plain, all": "captured anew, all",
    "restored, all": "restored, all",
    "restored, first": "restored, first",
    "floor": "the driver alone, all",
}
"""Figures of a number of graphs, and what they are called."""


def start_up(result: dict[str, Any]) -> str:
    """Draw the timelines of a job's start: plainly, restored, and by the peer where that was measured."""
    ready, waited = result["ready_seconds"], result["restore_waited_seconds"]["median"]
    rows = [
        ("plain torch", ready["plain"], result["plain_graphs_seconds"]),
        ("foundry restore", ready["restore"]["median"], waited),
    ]
    if peer := result.get("peer"):
        rows.insert(1, (peer["name"], peer["ready_seconds"]["median"], peer["waited_seconds"]["median"]))
    bottom = TOP + ROW * len(rows)
    note = _note(result, f"{result['graphs']} graphs")
    drawing = Drawing(bottom + 60, "Start of a decode job, until it is ready to serve", note)
    drawing.legend(LEFT, 82, ("imports, context, weights", "standing still for graphs"))
    scale = _bar_axis(drawing, max(row[1] for row in rows), len(rows), SECONDS)
    for number, (name, whole, graphs) in enumerate(rows):
        y = TOP + ROW * number + (ROW - BAR) / 2
        drawing.text(LEFT - 10, y + 20, name, anchor="end")
        drawing.bar(LEFT, y, (whole - graphs) * scale, BAR, 0)
        drawing.bar(LEFT + (whole - graphs) * scale, y, graphs * scale, BAR, 1)
        drawing.text(LEFT + whole * scale + 8, y + 13, f"{amount(whole, SECONDS)}, of it", size=12)
        drawing.text(LEFT + whole * scale + 8, y + 27, f"{amount(graphs, SECONDS)} for graphs", size=12)
    drawing.text(
        LEFT,
        bottom + 48,
        "One plain run; medians of restores. The rest differs from run to run.",
        size=12,
    )
    return drawing.svg()


def whole_start(result: dict[str, Any]) -> str:
    """Draw what a job's start is made of, until its first token; nothing if no whole start was measured."""
    moments = {way: result["moments"][way] for way in WAYS if f"{way}: {FIRST_TOKEN}" in result["figures"]}
    if not moments:
        return ""
    bottom = TOP + ROW * len(moments)
    drawing = Drawing(bottom + 60, "A decode job's whole start, to its first token", _note(result, "35 graphs"))
    drawing.legend(LEFT, 82, MOMENTS)
    scale = _bar_axis(drawing, max(found[FIRST_TOKEN] for found in moments.values()), len(moments), SECONDS)
    for number, (way, found) in enumerate(moments.items()):
        y = TOP + ROW * number + (ROW - BAR) / 2
        name, more = WAYS[way]
        if way == "peer" and "peer" in result:
            name, _, more = result["peer"].partition(" ")
        drawing.text(LEFT - 10, y + (13 if more else 20), name, anchor="end")
        if more:
            drawing.text(LEFT - 10, y + 28, more, size=12, anchor="end")
        x: float = LEFT
        parts = []
        for fill, moment in enumerate(MOMENTS):
            end = LEFT + found[moment] * scale
            if end - x >= SHORTEST:
                drawing.bar(x, y, end - x, BAR, fill)
                parts.append(moment)
            x = end
        figures = result["figures"]
        whole, graphs = (figures[f"{way}: {label}"]["median"] for label in (FIRST_TOKEN, "graphs"))
        what = "modules and graphs" if "modules" in parts else "graphs"
        drawing.text(x + 8, y + 13, f"{amount(whole, SECONDS)}, of it", size=12)
        drawing.text(x + 8, y + 27, f"{amount(graphs, SECONDS)} for {what}", size=12)
    drawing.text(
        LEFT,
        bottom + 48,
        "Medians of each moment. From the graphs to the first token it is too short to be seen.",
        size=12,
    )
    return drawing.svg()


def archive_parts(result: dict[str, Any]) -> str:
    """Draw what archives are made of."""
    archives = result["archives"]
    note = _note(result, "stored bytes, captures of a decode job")
    drawing = Drawing(TOP + ROW * len(archives) + 36, "Size of archives by part", note)
    drawing.legend(LEFT, 82, PARTS)
    scale = _bar_axis(drawing, max(one["stored"] for one in archives.values()), len(archives), BYTES)
    for number, (name, one) in enumerate(archives.items()):
        y = TOP + ROW * number + (ROW - BAR) / 2
        stored = {kind: section["stored"] for kind, section in one["sections"].items()}
        parts = [stored.get("blobs", 0), stored.get("parameters", 0)]
        parts.append(one["stored"] - sum(parts))
        drawing.text(LEFT - 10, y + 13, name, anchor="end")
        drawing.text(LEFT - 10, y + 28, f"{one['graphs']} graphs", size=12, anchor="end")
        x: float = LEFT
        for fill, part in enumerate(parts):
            drawing.bar(x, y, part * scale, BAR, fill)
            x += part * scale
        told = " + ".join(amount(part, BYTES) for part in parts)
        drawing.text(x + 8, y + 20, f"{amount(one['stored'], BYTES)} = {told}", size=12)
    return drawing.svg()


def many_graphs(result: dict[str, Any]) -> str:
    """Draw how the time that a program waits grows with its graphs."""
    numbers, figures = result["about"]["numbers"], result["figures"]
    note = _note(result, f"{result['about']['nodes']:,} nodes a graph")
    drawing = Drawing(430, "Time until graphs can be launched, by their number", note)
    measured = [name for name in MANY_GRAPHS if f"{numbers[0]} graphs, {name}" in figures]
    series = [[figures[f"{number} graphs, {name}"]["median"] for number in numbers] for name in measured]
    bottom, height, right = 370, 260, 590
    most = max(numbers)
    up = ticks(max(map(max, series)))
    for value in up:
        y = bottom - height * value / up[-1]
        drawing.line(LEFT, y, right, y, colour=PALE)
        drawing.text(LEFT - 10, y + 4, amount(value, SECONDS) if value else "0", anchor="end")
    for value in (value for value in ticks(most) if value <= most):
        x = LEFT + (right - LEFT) * value / most
        drawing.line(x, bottom, x, bottom + 5)
        drawing.text(x, bottom + 22, f"{value:g}", anchor="middle")
    drawing.line(LEFT, bottom, right, bottom)
    drawing.text((LEFT + right) / 2, bottom + 46, "graphs", anchor="middle")
    ends = []
    for style, values in enumerate(series):
        points = [
            (LEFT + (right - LEFT) * number / most, bottom - height * value / up[-1])
            for number, value in zip(numbers, values, strict=True)
        ]
        drawing.curve(points, style)
        ends.append((points[-1], f"{MANY_GRAPHS[measured[style]]}: {amount(values[-1], SECONDS)}"))
    lowest = bottom + 30.0
    for (x, y), label in sorted(ends, key=lambda end: -end[0][1]):
        lowest = min(y + 4, lowest - 16)
        drawing.text(x + 12, lowest, label, size=12)
    return drawing.svg()


def _bar_axis(drawing: Drawing, most: float, rows: int, unit: str) -> float:
    """Draw the axis of horizontal bars, and return how long one unit is."""
    marks = ticks(most)
    scale = (RIGHT - 150 - LEFT) / marks[-1]
    bottom = TOP + ROW * rows
    for value in marks:
        x = LEFT + value * scale
        drawing.line(x, TOP, x, bottom + 5, colour=PALE)
        drawing.text(x, bottom + 22, amount(value, unit) if value else "0", anchor="middle")
    drawing.line(LEFT, TOP, LEFT, bottom)
    return scale


def _note(result: dict[str, Any], what: str) -> str:
    """Say what was measured, on what, and when."""
    facts = result["machine"]
    simulated = facts["gpu"] == "simulated"
    where = f"the simulator, {facts['cores']} cores" if simulated else f"one {facts['gpu']}"
    which = "no GPU figures" if simulated else f"driver {facts['driver']}"
    return f"{what}; {where}; {which}; {result['date']}"


KINDS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("whole-start", whole_start),
    ("decode-job", start_up),
    ("many-graphs", many_graphs),
    ("archive-sizes", archive_parts),
)


def drawn(folder: Path) -> Iterator[tuple[str, str]]:
    """Draw all results of a folder that there is a chart for: names of files, and what is in them."""
    for name, draw in KINDS:
        for path in sorted(folder.glob(f"{name}-*.json")):
            result = results.read(path)
            if result is not None and (text := draw(result)):
                yield f"{path.stem}.svg", text


def main() -> int:
    """Draw what is kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=results.KEPT)
    parser.add_argument("--out", type=Path, default=CHARTS)
    wanted = parser.parse_args()
    wanted.out.mkdir(parents=True, exist_ok=True)
    for name, text in drawn(wanted.results):
        (wanted.out / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{wanted.out / name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
