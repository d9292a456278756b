"""Measure how long it takes to open an archive: its summary, and the head of all its sections.

    python benchmarks/open_speed.py [--runs 9] [--keep]

`summary` and `open` are calls in a process that has done them before, the way a tool meets the second archive; `first`
is all of a new process's work from `import foundry.archive` to the summary, without the interpreter's own start. The
capture is made up (`measuring/captures.py`).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from measuring import captures, process
from measuring.figures import INSTRUCTIONS, SECONDS, figure
from measuring.question import Answer, Asked, Question

FIRST = """
import time
begin = time.perf_counter()
import sys
from pathlib import Path
from foundry import archive
archive.summary(Path(sys.argv[1]))
print(time.perf_counter() - begin)
"""
CALLS = 20


def measure(asked: Asked) -> Answer:
    """Open an archive in a new process, and again and again in this one."""
    from foundry import archive

    path = asked.captures.have(captures.ONE) / captures.ONE

    def opened() -> None:
        with archive.open_archive(path) as found:
            found.head  # noqa: B018 - it is read when it is asked for

    command = [sys.executable, "-c", FIRST, str(path)]
    first = [float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(asked.runs)]
    counted = process.instructions(command, asked.folder, process.COUNTED_RUNS)
    return Answer(
        {
            "first summary of a process": figure(first, SECONDS),
            "summary": figure([seconds_of(lambda: archive.summary(path)) for _ in range(asked.runs)], SECONDS),
            "open, with its head": figure([seconds_of(opened) for _ in range(asked.runs)], SECONDS),
            **({"first summary of a process, instructions": figure(counted, INSTRUCTIONS)} if counted else {}),
        },
        asked.captures.sizes(),
    )


def seconds_of(work: Callable[[], object]) -> float:
    """Give the seconds that a call takes, of several in a row."""
    work()
    begin = time.perf_counter()
    for _ in range(CALLS):
        work()
    return (time.perf_counter() - begin) / CALLS


QUESTION = Question("open-speed", "how long does it take to open an archive", measure, runs=9)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
