"""How fast the machine is at the moment: a fixed piece of work of the kind that Foundry's own is made of.

python benchmarks/measuring/calibration.py RUNS
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time

SECONDS, PROCESSOR_SECONDS = "s", "s of processor"
"""Units of figures that go by the machine's speed."""

RUNS = 3
"""Before what is measured, and again after it: so a machine that changed meanwhile shows in the spread."""


def work() -> int:
    """Do the work: plain Python, hashing, compression, and arrays larger than the caches. Its answer never changes."""
    import numpy as np
    import zstandard

    counts: dict[int, int] = {}
    state = 1
    for _ in range(500_000):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        counts[state & 1023] = counts.get(state & 1023, 0) + 1
    words = np.arange(5_000_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    order = np.sort(words >> np.uint64(40))
    text = (order[::8] & np.uint64(0xFF)).astype(np.uint8).tobytes() * 8
    packed = zstandard.ZstdCompressor(level=3).compress(text)
    digest = hashlib.sha256(text + words[:500_000].tobytes()).digest()
    return len(counts) + len(packed) % 1000 + digest[0]


def measure(runs: int = RUNS) -> list[dict[str, float]]:
    """Have the work done several times: the time that passed, and that of the processor.

    By a process of its own: what this one has taken of memory would be told of all that it starts.
    """
    told = subprocess.run([sys.executable, __file__, str(runs)], check=True, stdout=subprocess.PIPE).stdout
    found: list[dict[str, float]] = json.loads(told)
    return found


def here(runs: int) -> list[dict[str, float]]:
    """Do the work several times, after once for the caches."""
    work()
    found = []
    for _ in range(runs):
        begin, used = time.perf_counter(), time.process_time()
        work()
        found.append({SECONDS: time.perf_counter() - begin, PROCESSOR_SECONDS: time.process_time() - used})
    return found


if __name__ == "__main__":
    json.dump(here(int(sys.argv[1])), sys.stdout)
