"""What a restore told of itself in its spools."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from foundry.findings import Finding
from foundry.spool import events
from foundry.spool.reader import process_folders, read_spool


@dataclass(slots=True)
class RestoreReport:
    """One process: the last totals, what became of each graph, how long each phase took (nanoseconds)."""

    role: str
    counters: dict[str, int] = field(default_factory=dict)
    graphs: list[events.GraphRestored] = field(default_factory=list)
    timings: dict[str, int] = field(default_factory=dict)
    told: list[events.Told] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def restore_reports(session: Path) -> list[RestoreReport]:
    """Read the report of each process of a session spool."""
    reports = []
    for folder in process_folders(session):
        spool = read_spool(folder)
        if spool is None:
            continue
        report = RestoreReport(spool.begin.role, findings=spool.findings)
        for entry in spool.entries:
            event = entry.event
            if isinstance(event, events.Counters):
                report.counters.update(event.values)
            elif isinstance(event, events.GraphRestored):
                report.graphs.append(event)
            elif isinstance(event, events.Timings):
                report.timings.update(event.values)
            elif isinstance(event, events.Told):
                report.told.append(event)
        reports.append(report)
    return reports
