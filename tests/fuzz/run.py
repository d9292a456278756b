"""Runs the fuzz target for a while and tells what came of it.

    python tests/fuzz/run.py [--seconds 1800] [--folder build/fuzz]

In rounds of five minutes, because the fuzzer's own memory grows with the inputs that it tried. The folder keeps the
corpus, which begins with the conformance vectors, and the inputs that failed. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "format_spec" / "vectors" / "v1"
ROUND = 300
LONGEST_INPUT = 1 << 16
SLOWEST_SECONDS = 60
MEMORY_MEGABYTES = 2048
PULSE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
EXECUTED = re.compile(r"(?:stat::number_of_executed_units:|^Done)\s+(\d+)", re.MULTILINE)


def begin_corpus(corpus: Path) -> None:
    """Put the vectors into the corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    for path in VECTORS.glob("*/*.fdry"):
        shutil.copyfile(path, corpus / f"{path.parent.name}-{path.stem}")


def one_round(corpus: Path, failed: Path, seconds: int) -> str:
    """Fuzz for so long and return what the fuzzer said."""
    options = {
        "max_total_time": seconds,
        "max_len": LONGEST_INPUT,
        "timeout": SLOWEST_SECONDS,
        "rss_limit_mb": MEMORY_MEGABYTES,
        "artifact_prefix": f"{failed}/",
        "print_final_stats": 1,
    }
    arguments = [str(corpus), *(f"-{name}={value}" for name, value in options.items())]
    # Threads would only take turns with the fuzzer; the reader starts none where it may use one core.
    core = min(os.sched_getaffinity(0))
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("archive_fuzzer.py")), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    return ended.stdout


def main() -> int:
    """Fuzz in rounds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz")
    wanted = parser.parse_args()
    corpus, failed = wanted.folder / "corpus", wanted.folder / "failed"
    begin_corpus(corpus)
    failed.mkdir(exist_ok=True)
    executed, last, end = 0, ("0", "0", "0"), time.monotonic() + wanted.seconds
    while (left := end - time.monotonic()) > 1:
        said = one_round(corpus, failed, max(1, min(ROUND, int(left))))
        (wanted.folder / "last-round.log").write_text(said)
        counts = [int(number) for number in EXECUTED.findall(said)]
        if not counts:
            sys.stderr.write(said[-4000:])
            return 1
        executed += max(counts)
        last = (PULSE.findall(said) or [last])[-1]
        print(
            f"{executed:,} inputs tried, {last[0]} edges and {last[1]} features met, {last[2]} inputs kept", flush=True
        )
    failures = sorted(path.name for path in failed.iterdir())
    print(json.dumps({"inputs": executed, "edges": int(last[0]), "features": int(last[1]), "failed": failures}))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
