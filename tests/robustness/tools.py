"""Puts what the tools are made of to an archive, sound or not. Each may refuse it with an ArchiveError only."""

from __future__ import annotations

import json
from pathlib import Path

from foundry import archive, diff
from foundry.describe import dot, svg
from foundry.describe.graphs import Graphs
from foundry.describe.kernels import images, kernels
from foundry.describe.memory import memory
from foundry.errors import ArchiveError
from foundry.findings import ARCHIVE_LIMIT, ARCHIVE_SECTION_DAMAGED, ARCHIVE_SECTION_SIZE, Severity
from foundry.page.assemble import render
from foundry.verify import Level, verify

MOST_GRAPHS = 4
OF_UNREAD = {ARCHIVE_LIMIT, ARCHIVE_SECTION_DAMAGED, ARCHIVE_SECTION_SIZE}
"""What verify may find in sections that a reader does not need, such as the summary."""


def check(path: Path, accepted: bool) -> str:
    """Verify an archive on every level; say what is wrong with the answer, or nothing."""
    try:
        with archive.open_archive(path) as opened:
            reports = {level: verify(opened, level) for level in Level}
    except ArchiveError:
        return "verify cannot open what the reader accepts" if accepted else ""
    for report in reports.values():
        json.dumps(report.as_dict())
    codes = {problem.code for problem in reports[Level.FULL].problems if problem.severity == Severity.ERROR}
    if accepted and not codes <= OF_UNREAD:
        return f"the reader accepts it, verify finds {sorted(codes)}"
    if not accepted and not codes:
        return "verify finds nothing wrong with what the reader refuses"
    if codes and reports[Level.DEEP].sound:
        return "the deep check accepts what the full one refuses"
    return ""


def describe(path: Path) -> None:
    """Make every document and drawing of an archive that the reader accepts."""
    with archive.open_archive(path) as opened:
        sizes = [blob.size for blob in opened.head.blobs]
        for process in opened.processes():
            graphs = Graphs(process)
            documents = [graphs.document(index) for index in range(min(MOST_GRAPHS, len(process.graphs)))]
            for document in documents:
                dot.draw(document)
                svg.draw(document)
            json.dumps([graphs.rows(), documents, memory(process), kernels(process), images(process, sizes)])


def page(path: Path) -> None:
    """Make the report page. Its summary may be wrong where the rest is not."""
    with archive.open_archive(path) as opened:
        try:
            opened.summary()
        except ArchiveError:
            return
        render(opened)


def compare(path: Path, other: Path) -> str:
    """Compare it with a sound archive, both ways; say so if the answers differ."""
    with archive.open_archive(path) as opened, archive.open_archive(other) as sound:
        one, back = diff.examine(opened, sound), diff.examine(sound, opened)
    return "" if one.verdict == back.verdict else f"{one.verdict.word} one way, {back.verdict.word} the other"
