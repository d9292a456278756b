"""Start-up of the capture against that of a restore. Draws what was measured and nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foundry.model import Process
from foundry.model.constants import TIME_SUFFIXES
from foundry.page.markup import Markup, join, number, tag
from foundry.page.quantities import duration, percent, whole_duration

BLOCKED = "graphs_blocked_ns"
MOST_SPANS = 40
MOST_MOMENTS = 32
_MOMENT = re.compile(r"at_(\w+?)(?:_ns)?")
_WORDS = {
    "driver_begin": "driver first called",
    "driver_end": "driver initialised",
    "first_context": "first context",
    "first_image": "first kernel image loaded",
    "first_capture": "first graph capture begun",
    "first_graph": "first graph made",
    "last_graph": "last graph made",
    "commit": "commit, ready to serve",
    "first_asked": "first graph asked for",
    "first_handed": "first graph handed over",
    "last_built": "last graph built",
}


@dataclass(slots=True)
class Lane:
    """One start of the program: nanoseconds since it began by moment, and durations by name."""

    title: str
    moments: dict[str, int] = field(default_factory=dict)
    spans: dict[str, int] = field(default_factory=dict)

    def take(self, name: str, nanoseconds: int) -> None:
        """Add a total under the name that the hook gave it."""
        moment = _MOMENT.fullmatch(name)
        if moment:
            self.moments[moment.group(1)] = nanoseconds
        else:
            self.spans[name] = nanoseconds


def captured(process: Process) -> Lane:
    """Read what a process told of its capture."""
    lane = Lane("Capture")
    totals = {name: value for name, value in process.counters.items() if name.endswith(TIME_SUFFIXES)}
    for name, value in {**totals, **process.spent}.items():
        lane.take(name, value)
    return lane


def restored(report: Mapping[str, Any], role: str) -> Lane | None:
    """Read what a restore report tells of the process with that role. Whatever is not as expected is left out."""
    for process in _items(report.get("processes")):
        if process.get("role") == role:
            lane = Lane("Restore")
            for name, value in _numbers(process.get("counters")).items():
                if name.endswith(TIME_SUFFIXES):
                    lane.take(name, round(value))
            for name, value in _numbers(process.get("seconds")).items():
                lane.take(name, round(value * 1e9))
            lane.moments = {name: round(at * 1e9) for name, at in _numbers(process.get("moments")).items()}
            for duplicate in ("background_nanoseconds", "blocked_nanoseconds"):
                if duplicate.removesuffix("_nanoseconds") in lane.spans:
                    lane.spans.pop(duplicate, None)
            return lane
    return None


def timeline(lanes: list[Lane]) -> Markup:
    """Draw the lanes on one axis as far as they have moments, and their durations as bars."""
    parts = [_waits(lanes), _axis(lanes), _others(lanes)]
    if not any(parts):
        return tag("p", "This archive holds no times.", class_="note")
    return join(parts)


def _waits(lanes: list[Lane]) -> Markup | None:
    """Compare the one duration that both starts have."""
    known = [(lane.title, lane.spans[BLOCKED]) for lane in lanes if BLOCKED in lane.spans]
    if not known:
        return None
    most = max(value for _, value in known)
    times = None
    if len(known) == 2 and 0 < known[1][1] < known[0][1]:
        times = tag(
            "p", tag("b", f"{_factor(known[0][1] / known[1][1])}\u00d7 less"), " waiting for graphs on the restore."
        )
    rows = [_bar(title, value, most, "m-graph" if title == "Restore" else "m-kept") for title, value in known]
    return join(tag("h3", "Time the program stood still for its graphs"), tag("ul", rows, class_="bars"), times)


def _factor(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _bar(title: str, value: int, most: int, style: str) -> Markup:
    fill = tag("i", class_=style, style=f"width:{number(percent(value, most))}%")
    return tag(
        "li",
        tag("span", title, class_="name"),
        tag("span", fill, class_="track"),
        tag("span", duration(value), class_="much"),
    )


def _axis(lanes: list[Lane]) -> Markup | None:
    drawn = [lane for lane in lanes if lane.moments]
    if not drawn:
        return None
    end = max(max(lane.moments.values()) for lane in drawn)
    if not end:
        return None
    order = sorted({name for lane in drawn for name in lane.moments}, key=lambda name: _place(drawn, name))[
        :MOST_MOMENTS
    ]
    lines = [_lane(lane, order, end) for lane in drawn]
    ticks = [
        tag("span", whole_duration(at) if at else "0", style=f"left:{number(percent(at, end))}%") for at in _ticks(end)
    ]
    rows = [
        tag(
            "tr",
            tag("th", tag("span", class_=f"swatch c{index % 11}"), f"until {_words(name)}", scope="row"),
            [
                tag("td", duration(lane.moments[name]) if name in lane.moments else "\u2013", class_="number")
                for lane in drawn
            ],
        )
        for index, name in enumerate(order)
    ]
    heads = [tag("th", "Since the process began", scope="col")]
    heads += [tag("th", lane.title, class_="number", scope="col") for lane in drawn]
    return join(
        tag("h3", "From the start of the process"),
        tag("div", lines, tag("div", tag("span"), tag("div", ticks, class_="ticks"), class_="row"), class_="rows axis"),
        tag(
            "div",
            tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows)),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_label="Moments",
        ),
    )


def _place(lanes: list[Lane], name: str) -> tuple[int, str]:
    return next(lane.moments[name] for lane in lanes if name in lane.moments), name


def _words(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def _lane(lane: Lane, order: list[str], end: int) -> Markup:
    cells, at = [], 0
    for name in sorted((name for name in order if name in lane.moments), key=lambda name: lane.moments[name]):
        moment = lane.moments[name]
        place = f"left:{number(percent(at, end))}%;width:{number(percent(max(moment - at, 0), end))}%"
        title = f"until {_words(name)}: {duration(moment)}"
        cells.append(tag("i", class_=f"c{order.index(name) % 11}", style=place, title=title))
        at = max(at, moment)
    words = ", ".join(f"{_words(name)} after {duration(lane.moments[name])}" for name in order if name in lane.moments)
    lane_box = tag("div", cells, class_="lane", role="img", aria_label=f"{lane.title}: {words}")
    return tag("div", tag("span", lane.title, class_="at"), lane_box, class_="row")


def _ticks(end: int) -> list[int]:
    power = 10 ** math.floor(math.log10(max(end, 1)))
    step = next(size for size in (power // 5, power // 2, power, power * 2) if size and end / size <= 5.5)
    return list(range(0, end - end // 12, step))


def _others(lanes: list[Lane]) -> Markup | None:
    parts: list[Markup] = []
    for lane in lanes:
        spans = {name: value for name, value in lane.spans.items() if name != BLOCKED and value}
        if not spans:
            continue
        most = max(spans.values())
        ranked = sorted(spans.items(), key=lambda item: (-item[1], item[0]))[:MOST_SPANS]
        rows = [_bar(_plain(name), value, most, "m-kept") for name, value in ranked]
        parts.append(
            tag(
                "details",
                tag("summary", f"{lane.title}: what Foundry timed itself ({len(spans)})"),
                tag("p", "These overlap: much of it runs in the background.", class_="note"),
                tag("ul", rows, class_="bars"),
            )
        )
    return join(parts) if parts else None


def _plain(name: str) -> str:
    for suffix in TIME_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.replace("_", " ")


def _items(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _numbers(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    return {
        str(name): number
        for name, number in sorted(value.items(), key=lambda item: str(item[0]))
        if isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number < 1e18
    }
