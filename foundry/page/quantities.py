"""Sizes, counts and times as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(count: int) -> str:
    """Write bytes in binary units with three digits."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    if unit == 0:
        return f"{count} B"
    return f"{_three(value)} {_UNITS[unit]}"


def whole_size(count: int) -> str:
    """Write a size that is a round one without decimals."""
    for unit in range(len(_UNITS) - 1, 0, -1):
        if count and count % (1 << (10 * unit)) == 0:
            return f"{count >> (10 * unit):,} {_UNITS[unit]}"
    return size(count)


def place(offset: int) -> str:
    """Write an offset in the largest unit that fits, to three decimals at most."""
    unit = 0
    while unit < len(_UNITS) - 1 and offset >= 1 << (10 * (unit + 1)):
        unit += 1
    return f"{_trimmed(offset / (1 << (10 * unit)))} {_UNITS[unit]}"


def duration(nanoseconds: float) -> str:
    """Write a time with three digits."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= scale * 0.9995:
            return f"{_three(nanoseconds / scale)} {unit}"
    return f"{nanoseconds:.0f} ns"


def count(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(part: float, whole: float) -> float:
    """Tell what part of the whole it is, in hundredths; 0 of nothing."""
    return 100.0 * part / whole if whole else 0.0


def share(part: float, whole: float) -> str:
    """Write a part of a whole in percent, never rounding something to nothing."""
    value = percent(part, whole)
    if not value:
        return "0%"
    if value < 0.1:
        return "<0.1%"
    return f"{value:.1f}%" if value < 10 and value != round(value) else f"{value:.0f}%"


def whole_duration(nanoseconds: int) -> str:
    """Write a round time without decimals that say nothing."""
    unit, scale = next((pair for pair in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)) if nanoseconds >= pair[1]), ("ns", 1))
    return f"{_trimmed(nanoseconds / scale)} {unit}"


def _trimmed(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
