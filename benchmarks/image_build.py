"""Measure how long it takes to make the restore image from an archive, and where that time goes.

    python benchmarks/image_build.py [--runs 5] [--keep]

This is what a first `foundry restore` of an archive does before the command starts, and what no later one does. Each
run is a new process that reads the archive, builds the image of its one process, and writes it. The capture is made up
(`measuring/captures.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from measuring import captures, process
from measuring.figures import BYTES, INSTRUCTIONS, PROCESSOR_SECONDS, SECONDS, figure
from measuring.question import Answer, Asked, Question

BUILD = """
import json, os, resource, sys, time
from pathlib import Path
begin = time.perf_counter()
from foundry import archive, image
import foundry.image.assemble
imported = time.perf_counter()
path, folder = Path(sys.argv[1]), Path(sys.argv[2])
capture = archive.read(path)
read = time.perf_counter()
for process in capture.processes:
    image.build(capture, process.role, folder / f"{process.role}.image", archive.summary(path).capture_id)
built = time.perf_counter()
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "import": imported - begin, "read": read - imported, "build": built - read, "whole": built - begin,
    "processor": time.process_time(), "memory": used.ru_maxrss << 10,
}))
"""


def measure(asked: Asked) -> Answer:
    """Build the image in new processes."""
    path = asked.captures.have(captures.ONE) / captures.ONE
    folder = asked.folder / "images"
    folder.mkdir()

    command = [sys.executable, "-c", BUILD, str(path), str(folder)]

    def build() -> dict[str, float]:
        told: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return told

    build()
    found = [build() for _ in range(asked.runs)]
    counted = process.instructions(command, asked.folder, process.COUNTED_RUNS)

    def times(part: str) -> dict[str, Any]:
        return figure([one[part] for one in found], SECONDS)

    size = sum(image.stat().st_size for image in folder.iterdir())
    return Answer(
        {
            "whole": times("whole"),
            "whole, all cores": figure([one["processor"] for one in found], PROCESSOR_SECONDS),
            "whole, memory": figure([one["memory"] for one in found], BYTES),
            "imports": times("import"),
            "reading the archive": times("read"),
            "building and writing the image": times("build"),
            "image": figure([size], BYTES),
            **({"whole, instructions": figure(counted, INSTRUCTIONS)} if counted else {}),
        },
        asked.captures.sizes(),
    )


QUESTION = Question("image-build", "how long does it take to make the restore image of a large archive", measure)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
