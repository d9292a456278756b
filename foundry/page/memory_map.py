"""The memory of a process to scale: the reserved range, the used spans of each arena row by row, and full pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.describe.documents import ArenaUse
from foundry.describe.memory import memory, reference_counts
from foundry.model import NONE, Arena, Device, Process
from foundry.model.memory import PAGE
from foundry.page.budget import Budget
from foundry.page.markup import Markup, join, number, tag
from foundry.page.quantities import count, percent, place, size, whole_size

MOST_ROWS = 16
MOST_PAGES = 16
MOST_SPANS = 4
MOST_DEVICES = 16
LEAST_GAP = 64 << 20
_FINEST = 0.0015
_STATES = ("freed", "kept", "graph")
_WORDS = {"freed": "freed before the end", "kept": "no graph points to it", "graph": "graphs point to it"}


@dataclass(frozen=True, slots=True)
class Piece:
    """Allocations drawn as one: those of a state that lie together and are too small to be told apart."""

    low: int
    high: int
    state: str
    first: int
    last: int
    number: int
    bytes: int


def memory_map(process: Process, budget: Budget) -> Markup:
    """Draw the map of all devices of a process."""
    table = process.allocations
    state = np.where(reference_counts(process) > 0, 2, np.where(table["died"] == NONE, 1, 0))
    uses = {(use["device"], use["arena"]): use for use in memory(process)["arenas"]}
    parts: list[Markup] = []
    for device in process.devices[:MOST_DEVICES]:
        mine = np.flatnonzero(table["device"] == device.ordinal)
        if device.arena_size and len(mine):
            parts.append(_device(process, device, mine, state, uses, budget, several=len(process.devices) > 1))
    if not parts:
        return tag("p", "No memory was placed by Foundry in this process.", class_="note")
    return join(_key(), parts)


def _key() -> Markup:
    return tag(
        "ul",
        [tag("li", tag("span", class_=f"swatch m-{state}"), _WORDS[state]) for state in reversed(_STATES)],
        class_="legend",
    )


def _device(
    process: Process,
    device: Device,
    mine: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    uses: dict[tuple[int, str], ArenaUse],
    budget: Budget,
    *,
    several: bool,
) -> Markup:
    table = process.allocations
    parts: list[Markup | None] = [tag("h3", f"GPU {device.ordinal}: {device.name}") if several else None]
    mine_uses = [uses[device.ordinal, arena.name.lower()] for arena in Arena]
    arenas = [_Rows(table, device, arena, mine, state) for arena in Arena]
    parts.append(_overview(device, mine_uses, [rows.spans for rows in arenas]))
    parts += [
        budget.fit(_arena(rows, use), f"The {use['arena']} arena")
        for rows, use in zip(arenas, mine_uses, strict=True)
        if rows.spans
    ]
    return join(parts)


def _overview(device: Device, uses: list[ArenaUse], used: list[list[tuple[int, int]]]) -> Markup:
    cells = []
    for use, spans in zip(uses, used, strict=True):
        fill = [tag("i", style=_stretch(begin, end, use["capacity"])) for begin, end in spans]
        cells.append(tag("span", fill, tag("b", use["arena"]), title=f"{use['arena']} arena from {use['address']}"))
    alternative = f"three arenas of {whole_size(device.arena_size)} each from address {device.base:#x}"
    return tag(
        "figure",
        tag("div", cells, class_="reserve", role="img", aria_label=alternative),
        tag(
            "figcaption",
            f"The address range that Foundry reserved, to scale: {alternative}. The filled parts are all that was ever "
            "in use; below they are shown enlarged.",
        ),
    )


class _Rows:
    """The allocations of an arena by address, as offsets in it, and the spans that they lie in."""

    def __init__(
        self,
        table: npt.NDArray[np.void],
        device: Device,
        arena: Arena,
        mine: npt.NDArray[np.int64],
        state: npt.NDArray[np.int64],
    ) -> None:
        rows = mine[table["arena"][mine] == arena]
        rows = rows[np.argsort(table["address"][rows], kind="stable")]
        self.table, self.state = table[rows], state[rows]
        self.low = self.table["address"] - np.uint64(device.base + arena * device.arena_size)
        self.high = self.low + np.maximum(self.table["taken"], self.table["size"])
        self.spans = _spans(self.low, self.high) if len(rows) else []


def _arena(rows: _Rows, use: ArenaUse) -> Markup:
    table, low, high, state = rows.table, rows.low, rows.high, rows.state
    facts = [
        count(use["allocations"], "allocation"),
        f"{size(use['bytes'])} stood at the end",
        f"graphs point to {size(use['graph_bytes'])}",
    ]
    parts: list[Markup | None] = [
        tag("h4", tag("span", f"{use['arena'].capitalize()} arena"), tag("small", " · ".join(facts)))
    ]
    shown = rows.spans[:MOST_SPANS]
    for begin, end in shown:
        within = (low >= begin) & (low < end)
        parts.append(_span(table[within], low[within], high[within], state[within], begin, end))
    if len(rows.spans) > len(shown):
        parts.append(
            tag("p", f"{count(len(rows.spans) - len(shown), 'further span')} of this arena not drawn.", class_="note")
        )
    parts.append(_pages(table, low, high, state))
    return tag("section", parts, class_="arena")


def _spans(low: npt.NDArray[np.uint64], high: npt.NDArray[np.uint64]) -> list[tuple[int, int]]:
    """Cut an arena where nothing is in use for long."""
    reach = np.maximum.accumulate(high)
    wide = max(LEAST_GAP, int(reach[-1] - low[0]) // 8)
    cuts = np.flatnonzero(low[1:] > reach[:-1] + np.uint64(wide)) + 1
    starts, ends = [0, *cuts.tolist()], [*cuts.tolist(), len(low)]
    return [(int(low[first]), int(reach[last - 1])) for first, last in zip(starts, ends, strict=True)]


def _row_size(length: int, allocations: int) -> int:
    most, row = min(MOST_ROWS, -(-allocations // 3)), PAGE
    while row * most < length:
        row *= 2
    return row


def _span(
    table: npt.NDArray[np.void],
    low: npt.NDArray[np.uint64],
    high: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    begin: int,
    end: int,
) -> Markup:
    row = _row_size(end - begin // PAGE * PAGE, len(table))
    first = begin // PAGE * PAGE
    lines = []
    for at in range(first, end, row):
        inside = (low < at + row) & (high > at)
        cells = _cells(_merge(table[inside], low[inside], high[inside], state[inside], at, row), at, row)
        lines.append(_line(f"+{place(at)}" if at else "+0", cells, at))
    return tag("div", lines, tag("p", f"Each row is {whole_size(row)}.", class_="scale"), class_="rows")


def _stretch(begin: int, end: int, whole: int) -> str:
    return f"left:{number(percent(begin, whole))}%;width:{number(percent(end - begin, whole))}%"


def _line(label: str, cells: Markup, at: int) -> Markup:
    return tag(
        "div", tag("span", label, class_="at", title=f"offset {at:#x}"), tag("div", cells, class_="lane"), class_="row"
    )


def _merge(
    table: npt.NDArray[np.void],
    low: npt.NDArray[np.uint64],
    high: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    at: int,
    row: int,
) -> list[Piece]:
    pieces: list[Piece] = []
    fine = row * _FINEST
    for kind in range(len(_STATES)):
        begun = len(pieces)
        for index in np.flatnonzero(state == kind).tolist():
            left, right = max(int(low[index]), at), min(int(high[index]), at + row)
            ordinal, taken = int(table["ordinal"][index]), int(table["taken"][index])
            last = pieces[-1] if len(pieces) > begun else None
            small = right - left < fine or (last is not None and last.high - last.low < fine)
            if last and small and left - last.high < fine:
                pieces[-1] = Piece(
                    last.low, max(last.high, right), last.state, min(last.first, ordinal), max(last.last, ordinal),
                    last.number + 1, last.bytes + taken,
                )  # fmt: skip
            else:
                pieces.append(Piece(left, right, _STATES[kind], ordinal, ordinal, 1, taken))
    return pieces


def _cells(pieces: list[Piece], at: int, row: int) -> Markup:
    return join(_cell(piece, at, row) for piece in pieces)


def _cell(piece: Piece, at: int, row: int) -> Markup:
    width = percent(piece.high - piece.low, row)
    name = f"#{piece.first}" if piece.number == 1 else f"{piece.number} from #{piece.first} to #{piece.last}"
    what = "allocation" if piece.number == 1 else "allocations"
    label = name if piece.number == 1 and width >= 3.6 else None
    return tag(
        "i",
        label,
        class_=f"m-{piece.state}",
        style=_stretch(piece.low - at, piece.high - at, row),
        title=f"{what} {name}: {size(piece.bytes)}, {_WORDS[piece.state]}",
    )


def _pages(
    table: npt.NDArray[np.void],
    low: npt.NDArray[np.uint64],
    high: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
) -> Markup | None:
    """Draw the pages that several small allocations share."""
    small = high - low < PAGE
    page = low // np.uint64(PAGE)
    numbers, counts = np.unique(page[small], return_counts=True)
    shared = numbers[counts > 1].tolist()
    if not shared or (len(low) and int(high.max()) <= PAGE * MOST_ROWS):
        return None
    lines = []
    for one in shared[:MOST_PAGES]:
        at = one * PAGE
        inside = (low < at + PAGE) & (high > at)
        cells = _cells(_merge(table[inside], low[inside], high[inside], state[inside], at, PAGE), at, PAGE)
        lines.append(_line(f"+{place(at)}" if at else "+0", cells, at))
    left = len(shared) - len(lines)
    more = f" {count(left, 'further page')} not drawn." if left else ""
    note = f"Pages of {whole_size(PAGE)} that small allocations share, enlarged.{more}"
    return tag("div", lines, tag("p", note, class_="scale"), class_="rows")
