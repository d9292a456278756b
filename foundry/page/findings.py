"""What is worth knowing: findings of the packer, and graphs that a restore cannot bring back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foundry.findings import Finding, Severity
from foundry.model import Process
from foundry.page.markup import Markup, join, tag
from foundry.page.overview import graph_label
from foundry.page.quantities import count

MOST = 100
_WORDS = {Severity.ERROR: "error", Severity.WARN: "warning", Severity.NOTE: "note"}


def findings(found: Sequence[Finding]) -> Markup:
    """List findings, the weightiest first; equal ones of a code stand together."""
    if not found:
        return tag("p", "Nothing was found.", class_="note")
    ranked = sorted(enumerate(found), key=lambda item: (-int(item[1].severity), item[1].code, item[0]))
    rows = [
        tag(
            "li",
            tag("span", _WORDS.get(one.severity, "note"), class_=f"badge s{int(one.severity)}"),
            tag("div", tag("p", one.text), tag("p", tag("code", one.code), _where(one.where), class_="note")),
        )
        for _, one in ranked[:MOST]
    ]
    left = len(ranked) - len(rows)
    return join(
        tag("ul", rows, class_="findings"), tag("p", f"{count(left, 'more finding')}.", class_="note") if left else None
    )


def _where(where: str) -> Markup | None:
    return join(" · ", where) if where else None


def refused(process: Process) -> Markup | None:
    """List the graphs that a restore leaves to the program, by reason."""
    reasons: Counter[tuple[str, str]] = Counter()
    names: dict[tuple[str, str], list[str]] = {}
    for graph in process.graphs:
        if not graph.restorable:
            reasons[graph.reason_code, graph.reason] += 1
            names.setdefault((graph.reason_code, graph.reason), []).append(graph_label(graph))
    if not reasons:
        return None
    rows = [
        tag(
            "li",
            tag("span", f"{times:,} \u00d7", class_="badge s1"),
            tag("div", tag("p", reason), tag("p", tag("code", code), " · ", _some(names[code, reason]), class_="note")),
        )
        for (code, reason), times in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:MOST]
    ]
    left = len(reasons) - len(rows)
    return join(
        tag("h3", "Graphs that a restore cannot bring back"),
        tag("p", "The program captures these anew, as it always did.", class_="note"),
        tag("ul", rows, class_="findings"),
        tag("p", f"{count(left, 'more reason')}.", class_="note") if left else None,
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:12])
    return shown + (f" and {len(names) - 12:,} more" if len(names) > 12 else "")
