"""The headline: what an archive is, where it comes from, and how much of it a restore can bring back."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from typing import TYPE_CHECKING

from foundry.page.markup import Markup, join, number, tag
from foundry.page.quantities import count, percent, size

if TYPE_CHECKING:
    from foundry.archive import DeviceSummary, Summary
    from foundry.archive.heads import Head

MOST_PAIRS = 200
_SEVERITIES = {"warn": "warning"}


def headline(summary: Summary, name: str) -> Markup:
    """Write the top of the page."""
    restorable = sum(process.restorable for process in summary.processes)
    simulated = any(process.simulated for process in summary.processes)
    words = command(summary.context)
    badges = [tag("span", "simulated GPU", class_="badge s1")] if simulated else []
    return tag(
        "header",
        tag("p", "Foundry archive ", tag("b", name), badges, class_="eyebrow"),
        tag("h1", title(summary)),
        tag("p", tag("code", words), class_="command scroll", tabindex=0) if words else None,
        _verdict(restorable, summary.graphs),
        _figures(summary),
    )


def title(summary: Summary) -> str:
    """Say in one line what it is."""
    gpus = devices(summary)
    text = count(summary.graphs, "CUDA graph")
    return f"{text} for {', '.join(gpus)}" if gpus else text


def devices(summary: Summary) -> list[str]:
    """Name the GPUs with how many processes or ordinals have each."""
    names = Counter(device.name for process in summary.processes for device in process.devices)
    told = [f"{number} \u00d7 {name}" if number > 1 else name for name, number in sorted(names.items())]
    return told if len(told) <= 3 else [*told[:2], f"{len(told) - 2} other kinds of GPU"]


def command(context: dict[str, str]) -> str:
    """Write the recorded command as a shell would take it; empty if there is none."""
    try:
        words = json.loads(context.get("argv", "[]"))
        return shlex.join(words) if isinstance(words, list) and all(isinstance(word, str) for word in words) else ""
    except ValueError:
        return ""


def _verdict(restorable: int, graphs: int) -> Markup:
    part = percent(restorable, graphs)
    if not graphs:
        text = "It holds no graphs."
    elif restorable == graphs:
        text = "All of them can be restored." if graphs > 1 else "It can be restored."
    else:
        text = f"{restorable:,} of {graphs:,} can be restored; the others are captured anew."
    style = "good" if restorable == graphs and graphs else "partly" if restorable else "none"
    bar = tag("span", tag("i", style=f"width:{number(part)}%"), class_="meter", role="img", aria_label=f"{part:.0f}%")
    return tag("p", bar, tag("span", text), class_=f"verdict {style}")


def _figures(summary: Summary) -> Markup:
    processes = summary.processes
    found = {name: number for name, number in summary.findings.items() if number}
    figures = [
        (f"{summary.graphs:,}", "graphs", f"in {count(sum(p.groups for p in processes), 'topology', 'topologies')}"),
        (f"{sum(p.nodes for p in processes):,}", "nodes", f"of {count(sum(p.kernels for p in processes), 'kernel')}"),
        (size(summary.file_size), "on disk", f"{size(summary.raw_size)} unpacked"),
        (f"{sum(p.images for p in processes):,}", "kernel images", "stored once each"),
        (
            f"{sum(p.allocations for p in processes):,}",
            "allocations",
            f"in {count(len(processes), 'process', 'processes')}",
        ),
        (
            f"{sum(found.values()):,}",
            "findings" if sum(found.values()) != 1 else "finding",
            ", ".join(count(number, _SEVERITIES.get(name, name)) for name, number in sorted(found.items()))
            or "nothing to tell",
        ),
    ]
    return tag(
        "dl",
        [tag("div", tag("dt", name), tag("dd", tag("b", value), tag("small", more))) for value, name, more in figures],
        class_="figures",
    )


def origin(summary: Summary, head: Head) -> Markup:
    """List where it comes from: program, GPU, driver, versions, what the session recorded."""
    pairs: list[tuple[str, str]] = []
    for process in summary.processes[:16]:
        ranks = "".join(f", {name}={value}" for name, value in sorted(process.ranks.items()))
        pairs.append(("process", f"{process.executable} ({process.role}{ranks})"))
        pairs += [(f"GPU {device.ordinal}", _device(device)) for device in process.devices]
        driver = _driver(process.driver_version)
        pairs.append(("driver", f"{driver}, {process.driver_library}" + (", simulated" if process.simulated else "")))
    if len(summary.processes) > 16:
        pairs.append(("processes", f"{len(summary.processes) - 16:,} more"))
    pairs += [(name, value) for name, value in sorted(summary.context.items()) if name != "argv"]
    pairs += [(name, value) for name, value in sorted(head.packages.items())]
    pairs += [("files of JIT caches", f"{len(head.files):,}")] if head.files else []
    pairs.append(("format", f"{summary.major}.{summary.minor}"))
    pairs.append(("capture id", summary.capture_id))
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs[:MOST_PAIRS]]
    left = len(pairs) - len(rows)
    return join(tag("dl", rows, class_="pairs"), tag("p", f"{left} more not shown.", class_="note") if left else None)


def _device(device: DeviceSummary) -> str:
    parts = [
        device.name,
        f"compute capability {device.compute_major}.{device.compute_minor}",
        count(device.multiprocessors, "multiprocessor"),
        size(device.total_memory),
    ]
    return ", ".join([*parts, "a MIG slice"] if device.mig else parts)


def _driver(version: int) -> str:
    return f"CUDA {version // 1000}.{version % 1000 // 10}" if version else "unknown"
