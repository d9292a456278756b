"""What a restore says of itself, for machines and people. It is read from the spool that the restored command wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foundry.compat import codes
from foundry.compat.items import Level
from foundry.errors import FoundryError
from foundry.model.constants import MOMENT_PREFIX
from foundry.session.status import Status
from foundry.session.unnamed import captured_as_always

if TYPE_CHECKING:
    from foundry.session.restore import Plan

REPORT_VERSION = 1
WITNESS_PREFIX = "witness_"
"""Of the totals in which the adapters count what comparisons with witnesses found."""
WITNESSES = ("equal", "differs", "missing", "unsteady", "state")


def of_restore(plan: Plan, spool: Path, status: Status, fault: str = "") -> dict[str, object]:
    """Make the report of a restore as it stands now. `fault`: why its images could not be made, `CODE: text`."""
    summary = plan.summary
    refused = str(plan.refused) if plan.refused else fault or None
    result: dict[str, object] = {
        "report": REPORT_VERSION,
        "restored": False,
        "simulated": any(process.simulated for process in summary.processes) if summary else None,
        "archive": str(plan.archive) if plan.archive else None,
        "capture_id": summary.capture_id if summary else None,
        "started_without_restore": refused,
        "code": fault.partition(": ")[0] or _code(plan, status),
        "differences": [codes.document(item) for item in plan.items if item.level not in (Level.SAME, Level.UNKNOWN)],
        "disarmed": dict(sorted(status.disarmed.items())),
        "caches": plan.caches.as_dict() if plan.caches else None,
        "graphs_in_archive": summary.graphs if summary else 0,
    }
    processes = _processes(spool) if plan.restores else []
    result["restored"] = any(process["graphs_restored"] for process in processes)
    result["graphs_restored"] = sum(_number(process["graphs_restored"]) for process in processes)
    result["graphs_given_up"] = sum(_number(process["graphs_given_up"]) for process in processes)
    counters = _added([process["counters"] for process in processes])
    result["counters"] = counters
    result["captured_as_always"] = captured_as_always(counters)
    result["witnesses"] = _witnesses(counters) if plan.restores else None
    result["processes"] = processes
    return result


def _code(plan: Plan, status: Status) -> str | None:
    """Give the code of why there was no restore, or why a process gave it up; None if there is none."""
    told: str | None = getattr(plan.refused, "code", None)
    return told or next(filter(None, map(codes.code_of, status.disarmed.values())), None)


def _witnesses(counters: object) -> dict[str, int]:
    """Count what `--check` found: graphs that are equal or differ, and by code those that could not be compared."""
    totals = counters if isinstance(counters, dict) else {}
    found = {name: totals.get(WITNESS_PREFIX + name, 0) for name in WITNESSES}
    return {"checked": found["equal"] + found["differs"], **found}


def _moments(told: dict[str, int]) -> dict[str, float]:
    """Give the seconds from the begin of the process to each moment, in the order in which they came."""
    in_order = sorted(told.items(), key=lambda item: (item[1], item[0]))
    return {name.removeprefix(MOMENT_PREFIX).removesuffix("_ns"): value / 1e9 for name, value in in_order}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _added(tables: list[object]) -> dict[str, int]:
    total: dict[str, int] = {}
    for table in tables:
        if isinstance(table, dict):
            for name, value in table.items():
                total[name] = total.get(name, 0) + value
    return dict(sorted(total.items()))


def _processes(spool: Path) -> list[dict[str, object]]:
    from foundry.spool import restore_reports

    result = []
    try:
        reports = restore_reports(spool)
    except FoundryError as error:
        return [{"role": "", "error": str(error), "graphs_restored": 0, "graphs_given_up": 0, "counters": {}}]
    for process in reports:
        restored = [graph for graph in process.graphs if graph.state == 1]
        given_up = [graph for graph in process.graphs if graph.state != 1]
        result.append(
            {
                "role": process.role,
                "graphs_restored": len(restored),
                "graphs_given_up": len(given_up),
                "given_up": [{"set": graph.set, "key": graph.key, "reason": graph.reason} for graph in given_up],
                "build_seconds": sum(graph.build_nanoseconds for graph in restored) / 1e9,
                "counters": dict(sorted(process.counters.items())),
                "seconds": {name: value / 1e9 for name, value in sorted(process.timings.items())},
                "moments": _moments(process.moments),
                "findings": [{"code": told.code, "text": told.text} for told in process.told]
                + [{"code": finding.code, "text": finding.text} for finding in process.findings],
            }
        )
    return result
