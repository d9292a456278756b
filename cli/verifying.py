"""What `foundry verify` says: the verdict first, then a line for each problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from foundry.findings import Finding, Severity
from foundry.session.words import readable_size
from foundry.verify.report import Level, Place, Problem, Report

if TYPE_CHECKING:
    from foundry.verify.device.parent import DeviceReport

_CHECKED = {
    Level.QUICK: "header, footer, table and summary",
    Level.FULL: "all digests, indices and counts",
    Level.DEEP: "all digests, indices, counts, kernels, pointers and edges",
}


def report_lines(archive: str, report: Report) -> list[str]:
    """Write what was checked and what came of it."""
    wrong = sum(problem.severity == Severity.ERROR for problem in report.problems)
    verdict = "is sound" if report.sound else f"is not sound: {_count(wrong, 'problem')}"
    return [
        f"`{archive}` {verdict}",
        f"checked: {_CHECKED[report.level]}",
        f"held: {', '.join(_held(report))}",
        f"capture: {report.capture_id}",
        *problem_lines(report.problems),
        *(f"says of itself: {_told(item)}" for item in report.told if item.severity > Severity.NOTE),
    ]


def device_lines(report: DeviceReport) -> list[str]:
    """Write what was built on a GPU and what came of it."""
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(report.devices)) or "no GPU"
    version = f"CUDA {report.driver // 1000}.{report.driver % 1000 // 10}" if report.driver else "no driver"
    good = report.count("built") + report.count("launched")
    verdict = f"{good} of {_count(len(report.graphs), 'graph')} built and read back equal"
    launched = report.count("launched")
    nodes, edges = (sum(getattr(graph, name) for graph in report.graphs) for name in ("nodes", "edges"))
    lines = [
        f"on {names} with {version}{', simulated' if report.simulated else ''}: {verdict}"
        + (f", {launched} launched" if launched else ""),
        f"compared: {_count(nodes, 'node')}, {_count(edges, 'edge')}",
    ]
    reasons: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for graph in report.graphs:
        if graph.text and graph.outcome not in ("failed", "not reached"):
            reasons.setdefault((graph.outcome, graph.process, graph.text), []).append(graph.graph)
    for (outcome, process, text), graphs in reasons.items():
        more = f" and {len(graphs) - 1} more" if len(graphs) > 1 else ""
        lines.append(f"{outcome}: {Place(process, graphs[0])}{more}: {text}")
    return [*lines, *problem_lines(report.problems)]


def problem_lines(problems: Iterable[Problem]) -> Iterator[str]:
    """Write a line for each problem, the worst first."""
    for problem in sorted(problems, key=lambda problem: -problem.severity):
        yield _told(problem.finding)


def _told(item: Finding) -> str:
    where = f"{item.where}: " if item.where else ""
    return f"{item.severity.name.lower()}: {item.code}: {where}{item.text}"


def _held(report: Report) -> Iterator[str]:
    yield _count(report.sections, "section")
    yield f"{readable_size(report.raw_size)} unpacked"
    yield _count(report.processes, "process", "processes")
    yield _count(report.graphs, "graph")
    yield _count(report.nodes, "node")
    if report.level is Level.DEEP:
        yield f"{_count(report.kernels_checked, 'kernel')} looked up in images"
        yield _count(report.pointers, "pointer")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
