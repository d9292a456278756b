"""Figures: several measurements of one thing, with a unit and perhaps a goal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from measuring.calibration import PROCESSOR_SECONDS, SECONDS

__all__ = ["BYTES", "INSTRUCTIONS", "PROCESSOR_SECONDS", "SECONDS", "amount", "figure", "spread"]

BYTES, INSTRUCTIONS = "B", "instructions"
_SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    BYTES: ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    INSTRUCTIONS: ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")),
}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Give the median of several measurements, and how far they lie apart."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "n": len(values)}


def figure(values: Sequence[float], unit: str, *, goal: float | None = None) -> dict[str, Any]:
    """Make a figure. `goal` is what its median may not be over."""
    made: dict[str, Any] = {"unit": unit, **spread(values)}
    if goal is not None:
        made |= {"goal": goal, "goal_met": made["median"] <= goal}
    return made


def amount(value: float, unit: str) -> str:
    """Write an amount for people, with three digits."""
    scales = _SCALES[unit.partition(" ")[0]]
    size, name = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    number = f"{value / size:.3g}" if abs(value) < 999.5 * size else f"{value / size:,.0f}"
    return f"{number} {name}".strip()
