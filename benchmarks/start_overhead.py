"""Measure how long `foundry restore` takes of its own before the command starts, with the archive's image cached.

    python benchmarks/start_overhead.py [--runs 20]

Runs on the simulator, as no driver is touched before the command starts: the time is that of this machine's processor
and disk. The command prints the clock as its first act; the same command run directly is subtracted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SERVER = Path(__file__).resolve().parents[1] / "tests" / "engines" / "decode_server.py"
FOUNDRY = [sys.executable, "-m", "foundry"]
CLOCK = ["date", "+%s%N"]
LIMIT = 0.15


def started_after(command: list[Any], environment: dict[str, str], folder: Path) -> float:
    """Return the seconds from now until the command printed the clock."""
    begin = time.time_ns()
    done = subprocess.run(
        list(map(str, command)), env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    return (int(done.stdout.split()[-1]) - begin) / 1e9


def measure(folder: Path, runs: int) -> dict[str, Any]:
    """Capture the demo's server, then start the clock through `foundry restore` and directly, in turns."""
    archive = folder / "server.fdry"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    server = [sys.executable, str(SERVER), "--once", "--quiet"]
    subprocess.run(
        [*FOUNDRY, "capture", "--sim", "-q", "-o", str(archive), "--", *server],
        env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    restore = [*FOUNDRY, "restore", "--sim", "-q", "--allow", "mismatch-arguments", archive, "--", *CLOCK]
    started_after(restore, environment, folder)
    through, direct = [], []
    for _ in range(runs):
        through.append(started_after(restore, environment, folder))
        direct.append(started_after(CLOCK, environment, folder))
    return {
        "cores": os.cpu_count(), "python": platform.python_version(), "runs": runs, "limit_seconds": LIMIT,
        "added_seconds": statistics.median(through) - statistics.median(direct),
        "through_foundry": {"median": statistics.median(through), "least": min(through), "most": max(through)},
        "direct": {"median": statistics.median(direct), "least": min(direct), "most": max(direct)},
    }  # fmt: skip


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), arguments.runs)
    print(json.dumps(figures, indent=1))
    return 0 if figures["added_seconds"] <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
