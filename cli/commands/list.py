"""`foundry list`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from foundry.session.words import count, readable_size

from ..context import Context
from ..options import Json
from ..render import command_line, plain, print_json, print_lines, print_table, shown_command, width

if TYPE_CHECKING:
    from foundry.store.catalog import Entry

NAME = "list"
TABLE_WIDTH = 120
MINUTES = "%Y-%m-%d %H:%M"
SHORT = "Show the archives in the store."
EXIT_CODES = ("0    done", "2    the command line does not say what to do", "125  the store cannot be used")


def command(context: typer.Context, json: Json = False) -> None:
    """Show the archives in the store, newest first."""
    from foundry.session import packing, workspace
    from foundry.store import catalog, location

    session: Context = context.obj
    place = location.find(session.environment)
    if place.note:
        session.warn(place.note)
    entries = list(catalog.entries(place))
    if json:
        print_json(
            [
                {
                    "archive": str(entry.path),
                    "bytes": entry.size,
                    "written": _time(entry.written, "%Y-%m-%dT%H:%M:%SZ"),
                    "command": command_line(entry.summary.context) if entry.summary else None,
                    "capture_id": entry.summary.capture_id if entry.summary else None,
                    "graphs": entry.summary.graphs if entry.summary else None,
                    "gpus": _gpus(entry),
                    "simulated": _simulated(entry),
                    "fault": entry.fault or None,
                }
                for entry in entries
            ]
        )
        return
    for one in workspace.left_overs():
        session.note(packing.sentence(one))
    if not entries:
        session.note(f"no archive in `{place.folder}`; make one: `foundry capture -- CMD`")
        return
    if width() < TABLE_WIDTH:
        _print_blocks(entries)
    else:
        _print_table(entries)
    session.note(f"in `{place.folder}`")


def _print_table(entries: list[Entry]) -> None:
    columns = ("archive", "left"), ("size", "right"), ("graphs", "right"), ("GPU", "left"), ("written", "left")
    print_table(
        [*columns, ("command", "left")],
        [
            (
                entry.path.name,
                readable_size(entry.size),
                str(entry.summary.graphs) if entry.summary else "-",
                _gpus_in_words(entry),
                _time(entry.written, MINUTES),
                _command(entry),
            )
            for entry in entries
        ],
    )


def _print_blocks(entries: list[Entry]) -> None:
    """Print a few lines for each archive: a table would break names, and they are there to be copied."""
    for entry in entries:
        graphs = [count(entry.summary.graphs, "graph")] if entry.summary else []
        facts = [readable_size(entry.size), *graphs, _gpus_in_words(entry), _time(entry.written, MINUTES)]
        print_lines(
            plain(entry.path.name), *(f"  {plain(text)}" for text in (", ".join(filter(None, facts)), _command(entry)))
        )


def _gpus_in_words(entry: Entry) -> str:
    return ", ".join(_gpus(entry)) + (" (simulated)" if _simulated(entry) else "")


def _command(entry: Entry) -> str:
    return shown_command(entry.summary.context) if entry.summary else entry.fault


def _time(seconds: float, layout: str) -> str:
    return time.strftime(layout, time.gmtime(seconds))


def _gpus(entry: Entry) -> list[str]:
    summary = entry.summary
    return sorted({device.name for process in summary.processes for device in process.devices}) if summary else []


def _simulated(entry: Entry) -> bool | None:
    summary = entry.summary
    return any(process.simulated for process in summary.processes) if summary else None
