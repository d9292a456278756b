"""The memory map of an archive: arenas, allocations, and what graphs refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...render import print_lines, print_table
from .processes import chosen
from .request import Request

if TYPE_CHECKING:
    from foundry.archive.opened import Opened

MOST_ROWS = 400


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """Describe the memory of each process."""
    from foundry.describe.memory import memory

    return {"processes": [memory(process) for _, process in chosen(opened, request)]}


def show(found: dict[str, Any]) -> None:
    """Print the memory of each process."""
    from foundry.session.words import count, readable_size

    for index, process in enumerate(found["processes"]):
        print_lines(*([""] if index else []), f"process {process['process']}")
        _arenas(process["arenas"])
        if process["allocations"]:
            print_lines("")
            _allocations(process["allocations"], len({arena["device"] for arena in process["arenas"]}) > 1)
        if process["ranges"]:
            print_lines("", "memory that Foundry did not place")
            _ranges(process["ranges"])
        if process["contents"]:
            held = sum(item["size"] for item in process["contents"])
            print_lines(
                "", f"contents kept: {count(len(process['contents']), 'stretch', 'stretches')}, {readable_size(held)}"
            )


def _arenas(arenas: list[dict[str, Any]]) -> None:
    from foundry.session.words import readable_size

    if not arenas:
        print_lines("no reserved range")
        return
    print_table(
        [
            ("GPU", "right"),
            ("arena", "left"),
            ("begins at", "left"),
            ("made", "right"),
            ("live", "right"),
            ("live bytes", "right"),
            ("reach", "right"),
            ("graphs use", "right"),
        ],
        [
            (
                str(arena["device"]),
                arena["arena"],
                arena["address"],
                f"{arena['allocations']:,}",
                f"{arena['live']:,}",
                readable_size(arena["bytes"]),
                readable_size(arena["end"]),
                readable_size(arena["graph_bytes"]),
            )
            for arena in arenas
        ],
    )


def _allocations(allocations: list[dict[str, Any]], several: bool) -> None:
    """Print allocations; alike ones that follow one another in their arena share a line."""
    from foundry.session.words import readable_size

    runs: list[list[dict[str, Any]]] = []
    for item in sorted(allocations, key=lambda item: (item["device"], item["arena"], item["ordinal"])):
        if runs and _alike(runs[-1][-1]) == _alike(item) and runs[-1][-1]["ordinal"] + 1 == item["ordinal"]:
            runs[-1].append(item)
        else:
            runs.append([item])
    print_table(
        [
            *([("GPU", "right")] if several else []),
            ("arena", "left"),
            ("allocation", "right"),
            ("offset", "right"),
            ("size each", "right"),
            ("made as", "left"),
            ("at the end", "left"),
            ("graphs", "right"),
        ],
        [
            (
                *([str(run[0]["device"])] if several else []),
                run[0]["arena"],
                str(run[0]["ordinal"]) + (f"-{run[-1]['ordinal']}" if len(run) > 1 else ""),
                f"{run[0]['offset']:#x}",
                readable_size(run[0]["size"]),
                run[0]["origin"].replace("_", "-"),
                "live" if run[0]["died"] is None else "freed",
                str(run[0]["graphs"]),
            )
            for run in runs[:MOST_ROWS]
        ],
    )
    if len(runs) > MOST_ROWS:
        print_lines(f"and {len(runs) - MOST_ROWS} more lines: `--json` has all")


def _alike(item: dict[str, Any]) -> tuple[Any, ...]:
    return (
        item["device"],
        item["arena"],
        item["size"],
        item["taken"],
        item["origin"],
        item["died"] is None,
        item["graphs"],
    )


def _ranges(ranges: list[dict[str, Any]]) -> None:
    from foundry.session.words import readable_size

    print_table(
        [("kind", "left"), ("size", "right"), ("address", "left"), ("name", "left")],
        [
            (item["kind"], readable_size(item["size"]), item["address"] or "not kept", item["name"])
            for item in ranges[:MOST_ROWS]
        ],
    )
    if len(ranges) > MOST_ROWS:
        print_lines(f"and {len(ranges) - MOST_ROWS} more: `--json` has all")
