"""Measure how fast `foundry verify` is, at each of its levels that need no GPU.

    python benchmarks/verify_speed.py [--runs 5] [--keep]

The capture is made up (`measuring/captures.py`); its images are no ELF files, which `--deep` says. Rates are of raw
bytes, in the time beyond what the check of a small archive takes; `--quick` reads too little to have one.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from measuring import captures, process
from measuring.process import FOUNDRY
from measuring.question import Answer, Asked, Question

LEAST_RATE = 1e9
"""Raw bytes a second, of whole archives."""
SMALL = "verify, a small archive"
SMALL_SHAPE = {"graphs": 2, "layers": 2, "kernels_per_layer": 3, "images": 4, "image_bytes": 2000}


class Level(NamedTuple):
    """A level of the check, on one archive, with the exit codes that it may end with."""

    name: str
    words: tuple[str, ...]
    archive: str
    codes: tuple[int, ...] = (0, 3)


LEVELS = (
    Level("verify --quick", ("--quick",), captures.ONE),
    Level("verify", (), captures.ONE),
    Level("verify, 4 processes", (), captures.RANKS),
    Level("verify --deep", ("--deep",), captures.ONE, (0, 1, 3)),
)


def measure(asked: Asked) -> Answer:
    """Check the archives at each level."""
    from foundry import archive

    folder = asked.captures.have(captures.ONE, captures.RANKS)
    small = captures.Captures(asked.folder / "small", SMALL_SHAPE).have(captures.ONE)
    found = process.figures(SMALL, [*FOUNDRY, "verify", captures.ONE], small, asked.runs, codes=(0, 3))
    start = found[SMALL]["median"]
    rates = {}
    for level in LEVELS:
        command = [*FOUNDRY, "verify", *level.words, level.archive]
        found |= process.figures(level.name, command, folder, asked.runs, codes=level.codes)
        if level is not LEVELS[0]:
            rates[level.name] = archive.summary(folder / level.archive).raw_size / (found[level.name]["median"] - start)
    return Answer(found, asked.captures.sizes(), {"raw_bytes_per_second": rates, "least_rate": LEAST_RATE})


QUESTION = Question("verify-speed", "how fast does `foundry verify` check a large archive", measure)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
