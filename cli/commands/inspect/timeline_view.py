"""What the start of the captured program was spent on, and that of a restore beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...render import print_lines, print_table
from .processes import chosen
from .request import Request
from .restored import read_report

if TYPE_CHECKING:
    from foundry.archive.opened import Opened
    from foundry.model import Process


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """Give times in seconds by name: totals, and moments counted from the begin of the process."""
    report = read_report(request.restore_report)
    found = []
    for _, process in chosen(opened, request):
        totals, moments = _times(process)
        found.append(
            {
                "process": process.role,
                "spent": totals,
                "moments": moments,
                "phases": _phases(process),
                "restore": _restored(report, process.role),
            }
        )
    return {"processes": found}


def _times(process: Process) -> tuple[dict[str, float], dict[str, float]]:
    from foundry.model.constants import MOMENT_PREFIX, TIME_SUFFIXES

    totals, moments = {}, {}
    told = process.spent | {name: count for name, count in process.counters.items() if name.endswith(TIME_SUFFIXES)}
    for name, value in sorted(told.items(), key=lambda item: (item[1], item[0])):
        short = name
        for suffix in TIME_SUFFIXES:
            short = short.removesuffix(suffix)
        if short.startswith(MOMENT_PREFIX):
            moments[short.removeprefix(MOMENT_PREFIX)] = value / 1e9
        else:
            totals[short] = value / 1e9
    return dict(sorted(totals.items())), moments


def _phases(process: Process) -> list[dict[str, Any]]:
    from foundry.model import NONE, PhaseKind

    return [
        {
            "kind": "scratch" if phase.kind == PhaseKind.SCRATCH else "named",
            "name": phase.name,
            "begin": phase.begin,
            "end": None if phase.end == NONE else phase.end,
        }
        for phase in process.phases
    ]


def _restored(report: dict[str, Any] | None, role: str) -> dict[str, Any] | None:
    """Take from a restore's report what it says of a process."""
    for process in report["processes"] if report else ():
        if isinstance(process, dict) and process.get("role") == role:
            spent = _seconds(process.get("seconds"))
            if isinstance(process.get("build_seconds"), (int, float)):
                spent["build"] = float(process["build_seconds"])
            return {
                "spent": dict(sorted(spent.items())),
                "moments": _seconds(process.get("moments")),
                "graphs_restored": _integer(process.get("graphs_restored")),
                "graphs_given_up": _integer(process.get("graphs_given_up")),
            }
    return None


def _seconds(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    found = {}
    for name, number in value.items():
        if isinstance(number, (int, float)):
            short = str(name).removesuffix("_ns").removesuffix("_nanoseconds")
            found[short] = float(number)
    return found


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


def show(found: dict[str, Any]) -> None:
    """Print the times, one process after the other."""
    for index, process in enumerate(found["processes"]):
        print_lines(*([""] if index else []), f"process {process['process']}")
        restore = process["restore"]
        told = False
        for what, heading in (("moments", "since the process began"), ("spent", "spent on")):
            mine, other = process[what], restore[what] if restore else {}
            names = list(dict.fromkeys([*mine, *other]))
            if not names:
                continue
            told = True
            columns = [(heading, "left"), ("capture", "right"), *([("restore", "right")] if restore else [])]
            print_table(
                columns,
                [
                    (name.replace("_", " "), _time(mine.get(name)), *([_time(other.get(name))] if restore else []))
                    for name in names
                ],
            )
        if not told:
            print_lines("no times were kept")
        if process["phases"]:
            _show_phases(process["phases"])


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:,.3f} s" if seconds >= 0.1 else f"{seconds * 1000:,.3f} ms"


def _show_phases(phases: list[dict[str, Any]]) -> None:
    print_table(
        [("phase", "left"), ("kind", "left"), ("steps", "right")],
        [
            (phase["name"], phase["kind"], f"{phase['begin']}-{'' if phase['end'] is None else phase['end']}")
            for phase in phases
        ],
    )
