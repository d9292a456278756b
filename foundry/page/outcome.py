"""What became of the graphs in a restore, by its report: a file from outside, in which anything may be missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from foundry.page.markup import Markup, join, tag
from foundry.page.quantities import count, duration

MOST_REASONS = 30


def outcome(report: Mapping[str, Any]) -> Markup:
    """Say how many graphs came back, and why the others did not."""
    refused = report.get("started_without_restore")
    if isinstance(refused, str) and refused:
        return tag("p", tag("b", "The restore was not tried: "), refused, class_="outcome")
    processes = report.get("processes")
    given_up: Counter[str] = Counter()
    restored = 0
    for process in processes if isinstance(processes, list) else []:
        if isinstance(process, dict):
            restored += _whole(process.get("graphs_restored"))
            items = process.get("given_up")
            for item in items if isinstance(items, list) else []:
                given_up[str(item.get("reason", "")) if isinstance(item, dict) else ""] += 1
    total = restored + sum(given_up.values())
    ready = report.get("ready_seconds")
    when = ""
    if isinstance(ready, (int, float)) and not isinstance(ready, bool) and 0 <= ready < 1e9:
        when = f" The command was ready {duration(ready * 1e9)} after it was started."
    rows = [
        tag("li", tag("span", f"{times:,} \u00d7", class_="badge s1"), tag("p", reason or "no reason was given"))
        for reason, times in sorted(given_up.items(), key=lambda item: (-item[1], item[0]))[:MOST_REASONS]
    ]
    simulated = " This was on the simulated GPU." if report.get("simulated") is True else ""
    return join(
        tag(
            "p", f"The restore brought back {restored:,} of {count(total, 'graph')}.{when}{simulated}", class_="outcome"
        ),
        tag("ul", rows, class_="findings") if rows else None,
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
