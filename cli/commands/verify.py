"""`foundry verify`."""

from __future__ import annotations

import typer

from ..options import READ_CODES, Archive, Json
from ..render import print_json
from .inspect import read

NAME = "verify"
SHORT = "Read and check everything in an archive."
EXIT_CODES = (*READ_CODES, "3  it is sound, and says of itself that it lacks something")


def command(context: typer.Context, archive: Archive, json: Json = False) -> int:
    """Read everything in an archive and check it. Needs no GPU."""
    from foundry import archive as archives
    from foundry.session.product import count

    summary = read(archive)
    capture = archives.read(archive)
    told = [finding for finding in capture.findings if finding.severity > 0]
    graphs = sum(len(process.graphs) for process in capture.processes)
    if json:
        print_json(
            {
                "archive": str(archive),
                "capture_id": summary.capture_id,
                "sound": True,
                "graphs": graphs,
                "findings": [
                    {"code": f.code, "severity": f.severity.name.lower(), "text": f.text, "where": f.where}
                    for f in capture.findings
                ],
            }
        )
    else:
        parts = f"{count(len(summary.sections), 'section')}, {count(graphs, 'graph')}"
        print(f"`{archive}` is sound: {parts}, capture {summary.capture_id}")
        for finding in told:
            where = f"{finding.where}: " if finding.where else ""
            print(f"{finding.severity.name.lower()}: {finding.code}: {where}{finding.text}")
    return 3 if told else 0
