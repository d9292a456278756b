"""Is something flat: does it stay where it was after a while, or does it grow with what is done?"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

SETTLING = 0.1
"""The share of a run in which caches may fill."""
LEAST_SAMPLES = 5
BOUNDS = {"host_bytes": 1 << 20, "open_files": 0.5, "threads": 0.5, "device_bytes": 2 << 20}
"""By how much each may rise in a whole run. The host's bound is what an interpreter's own allocator takes in one step,
the device's is its unit of allocation; divided by the length of a run they are the smallest leak that is noticed."""


def rise(values: Sequence[float]) -> float:
    """Return how much values rise from the end of the settling time to the last: by a straight line, or by their ends.

    A line sees a steady leak through noise, the medians of both ends see a step; the greater counts.
    """
    kept = values[int(len(values) * SETTLING) :]
    if len(kept) < 2:
        return 0.0
    line = statistics.linear_regression(range(len(kept)), kept)
    part = max(1, len(kept) // 5)
    return max(line.slope * (len(kept) - 1), statistics.median(kept[-part:]) - statistics.median(kept[:part]))


def growing(samples: Sequence[Mapping[str, float]], bounds: Mapping[str, float] = BOUNDS) -> list[str]:
    """Say of each bounded quantity that rises by more than its bound; samples without it, or too few, are a mistake."""
    if len(samples) < LEAST_SAMPLES:
        raise ValueError(f"{len(samples)} samples say nothing, at least {LEAST_SAMPLES} are needed")
    found = []
    for name, bound in bounds.items():
        grown = rise([sample[name] for sample in samples])
        if grown > bound:
            found.append(f"{name} rises by {grown:,.0f}, the bound is {bound:,.0f}")
    return found


def rises(samples: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    """Return the rise of each quantity."""
    return {name: round(rise([sample[name] for sample in samples]), 1) for name in names}
