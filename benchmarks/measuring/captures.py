"""Made-up captures of a large job, made once for all questions that are about archives.

    python benchmarks/measuring/captures.py FOLDER SHAPE NAME...

Graphs like those of a decode job, parameters with pointers and noise, images about as compressible as machine code, but
no ELF files (`tests/helpers/synthetic.py`). Each is made in a process of its own, as that takes much memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.process import FOUNDRY
from measuring.results import ROOT

LARGE = {"graphs": 256, "layers": 28, "kernels_per_layer": 36}
SPOOL, ONE, TWO, RANKS, SIMULATED = "spool", "one.fdry", "two.fdry", "ranks.fdry", "simulated.fdry"
"""The spool and its archive, one of a second run, one of several processes, and one for restores on the simulator."""
PROCESSES = 4
"""How many processes the third archive has, each with the graphs of the first."""
SHIFT = 0x10000
"""By how much stack and heap words stand elsewhere in the second archive, as they do in a second run."""
NOISE = (0x550000000000, 0x800000000000)


class Captures:
    """A folder of captures of one shape."""

    def __init__(self, folder: Path, shape: Mapping[str, int]) -> None:
        self.folder, self.shape = folder, dict(shape)

    def have(self, *names: str) -> Path:
        """Make what is not there yet, and return the folder."""
        missing = [name for name in names if not (self.folder / name).exists()]
        if missing:
            self.folder.mkdir(parents=True, exist_ok=True)
            words = [sys.executable, __file__, str(self.folder), json.dumps(self.shape), *missing]
            subprocess.run(words, check=True)
        return self.folder

    def sizes(self) -> dict[str, Any]:
        """Tell how large the capture is."""
        from foundry import archive

        brief = archive.summary(self.have(SPOOL, ONE) / ONE)
        return {
            **asdict(_shape(self.shape)),
            "nodes": sum(process.nodes for process in brief.processes),
            "raw_bytes": brief.raw_size,
            "largest_section_bytes": max(section.raw for section in brief.sections),
        }


def _shape(wanted: Mapping[str, int]) -> Any:
    sys.path[:0] = [str(ROOT / "tests")]
    from helpers.synthetic import Shape

    return Shape(**wanted)


def make(folder: Path, shape: Mapping[str, int], names: list[str]) -> None:
    """Make captures; the spool and the first archive with any of them."""
    made = _shape(shape)
    from helpers.synthetic import make_spool

    from foundry import archive

    if not (folder / SPOOL).exists():
        make_spool(folder / SPOOL, made)
    if not (folder / ONE).exists():
        subprocess.run([*FOUNDRY, "pack", SPOOL, "-o", ONE, "--keep", "-q"], cwd=folder, check=True)
    if not {TWO, RANKS, SIMULATED} & set(names):
        return
    capture = archive.read(folder / ONE)
    process = capture.processes[0]
    if TWO in names:
        words = process.parameters.view("<u8").copy()
        words[(words >= NOISE[0]) & (words < NOISE[1])] += SHIFT
        moved = replace(process, parameters=words.view("u1"))
        archive.write(replace(capture, processes=(moved,)), folder / TWO, force=True)
    if RANKS in names:
        ranks = tuple(replace(process, role=f"rank-{number}") for number in range(PROCESSES))
        archive.write(replace(capture, processes=ranks), folder / RANKS, force=True)
    if SIMULATED in names:
        here = replace(process, simulated=True)
        archive.write(replace(capture, processes=(here,)), folder / SIMULATED, force=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:])
