"""All findings of an archive."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ...render import plain, print_lines, width
from .request import Request
from .words import named_reason

if TYPE_CHECKING:
    from foundry.archive.opened import Opened


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """List the findings; a process's are those whose place begins with its role."""
    return {
        "findings": [
            item.as_dict()
            for item in opened.head.findings
            if request.process is None or item.where.split(",")[0] == request.process
        ]
    }


def show(found: dict[str, Any]) -> None:
    """Print the findings by code, the worst first, the places of one code and text together."""
    import textwrap

    ranks = {"error": 0, "warn": 1, "note": 2}
    findings = found["findings"]
    if not findings:
        print_lines("no findings")
        return
    counts = Counter((item["severity"], item["code"]) for item in findings)
    for severity, code in sorted(counts, key=lambda key: (ranks.get(key[0], 9), -counts[key], key[1])):
        print_lines(f"{severity} {plain(code)}: {counts[severity, code]}")
        places: dict[str, list[str]] = {}
        for item in findings:
            if (item["severity"], item["code"]) == (severity, code):
                places.setdefault(item["text"], []).append(item["where"])
        for text, where in places.items():
            lines = [plain(named_reason(text)), *(f"  {plain(place)}" for place in where if place)]
            for line in lines:
                indent = "    " if line.startswith("  ") else "  "
                print_lines(
                    *textwrap.wrap(
                        line.strip(),
                        max(width(), 40),
                        initial_indent=indent,
                        subsequent_indent=indent + "  ",
                        break_on_hyphens=False,
                    )
                )
