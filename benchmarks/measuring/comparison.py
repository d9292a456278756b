"""A result against the kept one of the same class of machine.

Times are compared as multiples of the calibration loop, so a machine that is slower today, or another of its class, is
not taken for slower code. How far a figure may lie off is a tolerance, and how far the measurements themselves lie
below their medians, in both results: what is measured can only be disturbed upwards, so that tells the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from measuring.figures import BYTES, INSTRUCTIONS, PROCESSOR_SECONDS, SECONDS, amount

TOLERANCES = {SECONDS: 0.10, PROCESSOR_SECONDS: 0.08, BYTES: 0.05, INSTRUCTIONS: 0.02}
ALIKE, SLOWER, FASTER, NEW, GONE = "alike", "slower", "faster", "new", "gone"
WORDS = {BYTES: ("larger", "smaller"), INSTRUCTIONS: ("more", "fewer")}


class Verdict(NamedTuple):
    """What became of one figure. `ratio` is now to then, each by its calibration; 0 where there is none."""

    name: str
    kind: str
    ratio: float = 0.0
    margin: float = 0.0
    text: str = ""

    @property
    def worse(self) -> bool:
        """Whether it is a regression: slower, larger, or no longer measured."""
        return self.kind in (SLOWER, GONE)


def why_not(kept: Mapping[str, Any] | None, now: Mapping[str, Any], kind: str) -> str:
    """Say why the two cannot be compared at all; empty if they can be."""
    if kept is None:
        return f"no kept result of this class of machine ({kind})"
    if "figures" not in kept or "calibration" not in kept:
        return "the kept result has no figures with a calibration"
    if kept.get("about") != now.get("about"):
        return "the kept result is of other work"
    return ""


def differences(kept: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name what else differs, as that may be the reason of a difference: versions, and the processor."""
    one, other = kept["machine"], now["machine"]
    names = sorted(one.keys() | other.keys())
    found = [(name, one.get(name), other.get(name)) for name in names]
    return [f"{name}: {then} then, {now} now" for name, then, now in found if then != now]


def compare(kept: Mapping[str, Any], now: Mapping[str, Any]) -> list[Verdict]:
    """Compare all figures, in the order of the new result."""
    then, found = kept["figures"], now["figures"]
    verdicts = [
        _verdict(name, then[name], figure, kept["calibration"], now["calibration"])
        if name in then and then[name]["unit"] == figure["unit"]
        else Verdict(name, NEW)
        for name, figure in found.items()
    ]
    return verdicts + [Verdict(name, GONE, text=f"gone: {name}") for name in then if name not in found]


def _verdict(
    name: str, then: Mapping[str, Any], now: Mapping[str, Any], calibrated: Mapping[str, Any], clock: Mapping[str, Any]
) -> Verdict:
    unit = now["unit"]
    if min(then["median"], now["median"]) <= 0:
        return Verdict(name, ALIKE)
    ratio, margin = now["median"] / then["median"], TOLERANCES[unit] + _noise(then) + _noise(now)
    measured = f"kept {amount(then['median'], unit)}, now {amount(now['median'], unit)}"
    if unit in clock and unit in calibrated:
        before, after = calibrated[unit], clock[unit]
        ratio *= before["median"] / after["median"]
        margin += _noise(before) + _noise(after)
        measured = (
            f"kept {amount(then['median'], unit)} at calibration {amount(before['median'], unit)}, "
            f"now {amount(now['median'], unit)} at {amount(after['median'], unit)}"
        )
    if 1 / (1 + margin) <= ratio <= 1 + margin:
        return Verdict(name, ALIKE, ratio, margin)
    kind = SLOWER if ratio > 1 else FASTER
    word = WORDS.get(unit, (SLOWER, FASTER))[0 if kind == SLOWER else 1]
    return Verdict(name, kind, ratio, margin, f"{word}: {name} {ratio:.2f}x ({measured}, within {margin:.0%} is noise)")


def _noise(figure: Mapping[str, Any]) -> float:
    """Give how far the least measurement lies below the median."""
    median = figure["median"]
    return (median - figure["least"]) / median if median > 0 else 0.0
