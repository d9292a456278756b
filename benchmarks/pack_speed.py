"""Measure how long `foundry pack` takes from a spool of 256 graphs of about 1,000 nodes to the archive.

    python benchmarks/pack_speed.py [--runs 5] [--keep]

The capture is made up (`measuring/captures.py`). Each figure is of a whole process, from start to exit, with its files
in the page cache.
"""

from __future__ import annotations

import sys

from measuring import captures, process
from measuring.figures import BYTES, figure
from measuring.process import FOUNDRY
from measuring.question import Answer, Asked, Question

GOAL = 3.0
OUTPUT = "again.fdry"


def measure(asked: Asked) -> Answer:
    """Pack the spool again and again."""
    spool = asked.captures.have(captures.SPOOL) / captures.SPOOL
    command = [*FOUNDRY, "pack", str(spool), "-o", OUTPUT, "--force", "--keep", "-q"]
    found = process.figures("pack", command, asked.folder, asked.runs, goal=GOAL)
    size = (asked.folder / OUTPUT).stat().st_size
    spool_bytes = sum(path.stat().st_size for path in spool.rglob("*") if path.is_file())
    about = {**asked.captures.sizes(), "spool_bytes": spool_bytes}
    return Answer({**found, "archive": figure([size], BYTES)}, about)


QUESTION = Question("pack-speed", "how long does `foundry pack` take, and how large is what it writes", measure)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
