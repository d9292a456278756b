"""What a restore told of itself in its spools."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from foundry.findings import Finding
from foundry.model.constants import MOMENT_PREFIX, TIME_SUFFIXES
from foundry.spool import events
from foundry.spool.reader import process_folders, read_spool


@dataclass(slots=True)
class RestoreReport:
    """One process: the last totals, what became of each graph, how long each phase took (nanoseconds).

    `moments` are nanoseconds since the process began, by their names in the spool.
    """

    role: str
    counters: dict[str, int] = field(default_factory=dict)
    graphs: list[events.GraphRestored] = field(default_factory=list)
    timings: dict[str, int] = field(default_factory=dict)
    moments: dict[str, int] = field(default_factory=dict)
    told: list[events.Told] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def is_moment(name: str) -> bool:
    """Tell a moment from the other totals by its name."""
    return name.startswith(MOMENT_PREFIX) and name.endswith(TIME_SUFFIXES)


def restore_reports(session: Path) -> list[RestoreReport]:
    """Read the report of each process of a session spool."""
    reports = []
    for folder in process_folders(session):
        spool = read_spool(folder)
        if spool is None:
            continue
        report = RestoreReport(spool.begin.role, findings=spool.findings)
        # One that was given and then given up is told twice; the last word counts.
        graphs: dict[tuple[str, str], events.GraphRestored] = {}
        for entry in spool.entries:
            event = entry.event
            if isinstance(event, events.Counters):
                for name, value in event.values:
                    of_a_kind = report.moments if is_moment(name) else report.counters
                    of_a_kind[name] = value
            elif isinstance(event, events.GraphRestored):
                graphs[event.set, event.key] = event
            elif isinstance(event, events.Timings):
                report.timings.update(event.values)
            elif isinstance(event, events.Told):
                report.told.append(event)
        report.graphs.extend(graphs.values())
        reports.append(report)
    return reports
