"""`foundry list`."""

from __future__ import annotations

import time

import typer

from ..context import Context
from ..options import Json
from ..render import command_line, print_json, print_table

NAME = "list"
SHORT = "Show the archives in the store."
EXIT_CODES = ("0    done", "2    the command line does not say what to do", "125  the store cannot be used")


def command(context: typer.Context, json: Json = False) -> None:
    """Show the archives in the store, newest first."""
    from foundry.session.product import readable_size
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
    if not entries:
        session.note(f"no archive in `{place.folder}`; make one: `foundry capture -- CMD`")
        return
    print_table(
        [
            ("archive", "left"),
            ("size", "right"),
            ("graphs", "right"),
            ("GPU", "left"),
            ("written", "left"),
            ("command", "left"),
        ],
        [
            (
                entry.path.name,
                readable_size(entry.size),
                str(entry.summary.graphs) if entry.summary else "-",
                ", ".join(_gpus(entry)) + (" (simulated)" if _simulated(entry) else ""),
                _time(entry.written, "%Y-%m-%d %H:%M"),
                command_line(entry.summary.context) if entry.summary else entry.fault,
            )
            for entry in entries
        ],
    )
    session.note(f"in `{place.folder}`")


def _time(seconds: float, layout: str) -> str:
    return time.strftime(layout, time.gmtime(seconds))


def _gpus(entry: object) -> list[str]:
    summary = getattr(entry, "summary", None)
    return sorted({device.name for process in summary.processes for device in process.devices}) if summary else []


def _simulated(entry: object) -> bool | None:
    summary = getattr(entry, "summary", None)
    return any(process.simulated for process in summary.processes) if summary else None
