"""Measure what reading ahead the files of a start gives, with a dropped page cache and with a warm one.

    python benchmarks/prefetch.py [--runs 5] [--modules 2000] [--weights 512] [--keep]

The job imports made-up modules, maps a file of weights and looks at all of it, and ends with the graphs of the self
test on the simulator: what it waits for is this machine's disk and Python, and no GPU. It is captured with
`--prefetch`; then restores with and without reading ahead take turns, each with every file of the list dropped from
the page cache first, or none. Names and inodes stay cached: nobody but root may drop those, so a first start after a
boot waits longer, with both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from measuring import process
from measuring.figures import BYTES, SECONDS, figure
from measuring.process import FOUNDRY
from measuring.question import Answer, Asked, Question

MIB = 1 << 20
MODULE = '"""A made-up module."""\n' + "".join(
    f'\n\ndef function_{number}(first, second={number}):\n    """Do something {number}."""\n'
    f"    return [first, second, {{'name': '{number}', 'value': first * {number}}}]\n"
    for number in range(60)
)
JOB = """
import hashlib, importlib, mmap, runpy, sys
folder, modules = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, folder)
for number in range(modules):
    importlib.import_module(f"made_up.module_{number}")
with open(folder + "/weights", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
    for at in range(0, len(data), 1 << 22):
        hashlib.blake2b(data[at : at + (1 << 16)])
        data[at : at + (1 << 22)]
runpy.run_module("foundry.selftest", run_name="__main__")
"""


def make_job(folder: Path, modules: int, weights: int) -> list[str]:
    """Make the job's files, and give its command."""
    package = folder / "made_up"
    package.mkdir()
    for number in range(modules):
        (package / f"module_{number}.py").write_text(MODULE.replace("Do something", f"Do {number},"))
    with (folder / "weights").open("wb") as file:
        for _ in range(weights):
            file.write(os.urandom(MIB))
    (folder / "job.py").write_text(JOB)
    return [sys.executable, str(folder / "job.py"), str(folder), str(modules)]


def drop(files: list[Path]) -> None:
    """Drop the pages of files from the page cache, as anyone may."""
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def measure(asked: Asked) -> Answer:
    """Restore the job with and without reading ahead, cold and warm, in turns."""
    from foundry import archive

    folder, options = asked.folder, asked.options
    home = folder / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(folder / "cache")}
    job = make_job(folder, options.modules, options.weights)
    path = folder / "job.fdry"
    capture = [*FOUNDRY, "capture", "--sim", "--prefetch", "-q", "-f", "-o", str(path), "--", *job]
    for _ in range(2):  # the second time the modules are compiled
        subprocess.run(capture, env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    with archive.open_archive(path) as opened:
        listed = opened.start_files
    files = [found for file in listed if (found := Path(file.path.replace("~", str(home), 1))).is_file()]
    restore = [*FOUNDRY, "restore", "--sim", "-q"]
    ways = {"with": restore, "without": [*restore, "--no-prefetch"]}
    seconds: dict[tuple[str, str], list[float]] = {}
    for command in ways.values():  # the restore image is made first
        process.run([*command, str(path), "--", *job], folder, environment=environment)
    for turn in range(asked.runs):
        for state in ("dropped", "warm"):
            for way in sorted(ways, reverse=bool(turn % 2)):
                if state == "dropped":
                    drop(files)
                else:
                    process.run(["cat", *map(str, files)], folder)
                taken = process.run([*ways[way], str(path), "--", *job], folder, environment=environment)
                seconds.setdefault((state, way), []).append(taken.seconds)
    found: dict[str, dict[str, Any]] = {
        f"start, cache {state}, {way} reading ahead": figure(values, SECONDS)
        for (state, way), values in seconds.items()
    }
    found["bytes read ahead"] = figure([sum(file.wanted for file in listed)], BYTES)
    return Answer(found, {"modules": options.modules, "weights_mib": options.weights}, {"files": len(listed)})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let the job's size be chosen."""
    parser.add_argument("--modules", type=int, default=2000)
    parser.add_argument("--weights", type=int, default=512, help="MiB")


QUESTION = Question(
    "prefetch", "what does reading ahead the files of a start give", measure, runs=5, add_options=add_options
)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
