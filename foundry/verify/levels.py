"""The levels, one process and one blob at a time, so that memory does not grow with the file."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from foundry.archive import layout
from foundry.errors import ArchiveError
from foundry.verify.report import Level, Problem, Report, of_archive

if TYPE_CHECKING:
    from foundry.archive.opened import Opened
    from foundry.model import Process
    from foundry.verify.deep import Deep


def verify(opened: Opened, level: Level) -> Report:
    """Check an archive that is open, whose header, footer and table are sound already."""
    report = Report(
        capture_id=opened.capture_id,
        level=level,
        sections=len(opened.sections),
        raw_size=sum(section.raw for section in opened.sections),
        processes=0,
    )
    try:
        report.told = opened.head.findings
        report.processes = opened.head.processes
    except ArchiveError as error:
        report.add(of_archive(error))
        return report
    if level is Level.QUICK:
        _quick(opened, report)
        return report
    with ThreadPoolExecutor(1) as pool:
        # Decoding a process checks the sections that it reads; at the full level that is not all of them.
        digests = pool.submit(opened.check_sections, left_out=True) if level is Level.FULL else None
        _processes(opened, report, level)
        _finish(opened, report, digests)
    return report


def _finish(opened: Opened, report: Report, digests: Future[None] | None) -> None:
    """Check what no process shows; where anything is wrong, section by section to find every one that is damaged."""
    try:
        if digests:
            digests.result()
        else:
            for section in opened.sections:
                if section.kind not in (*layout.OF_PROCESS, layout.Kind.BLOBS):
                    opened.check_section(section)
    except ArchiveError as error:
        _add(report, of_archive(error))
    if not any(problem.code.startswith("archive-") for problem in report.problems):
        return
    for section in opened.sections:
        try:
            opened.check_section(section)
        except ArchiveError as error:
            _add(report, of_archive(error))


def _quick(opened: Opened, report: Report) -> None:
    try:
        summary = opened.summary()
    except ArchiveError as error:
        report.add(of_archive(error))
        return
    report.graphs = summary.graphs
    report.nodes = sum(process.nodes for process in summary.processes)
    report.kernels = sum(process.kernels for process in summary.processes)


def _processes(opened: Opened, report: Report, level: Level) -> None:
    try:
        opened.check_agreement()
    except ArchiveError as error:
        report.add(of_archive(error))
    deep = _deep(opened, report) if level is Level.DEEP else None
    for index in range(opened.head.processes):
        try:
            process = opened.process(index) if deep else opened.structure(index)
        except ArchiveError as error:
            _add(report, of_archive(error, f"#{index}"))
            continue
        _count(process, report)
        if deep:
            deep.process(index, process)
        del process
    if deep:
        deep.finish()


def _deep(opened: Opened, report: Report) -> Deep:
    from foundry.verify.deep import Deep  # the other levels do without what it imports

    return Deep(opened, report)


def _add(report: Report, problem: Problem) -> None:
    """Keep a problem, unless the same is known of another process, or of the whole."""
    if not any((known.code, known.text) == (problem.code, problem.text) for known in report.problems):
        report.add(problem)


def _count(process: Process, report: Report) -> None:
    import numpy as np

    sizes = np.array([len(group.nodes) for group in process.groups] or [0])
    report.graphs += len(process.graphs)
    report.nodes += int(sizes[process.bodies].sum())
    report.kernels += len(process.kernels)
