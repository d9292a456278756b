"""Where the bytes of an archive are: its sections as they are stored, and what its blobs hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from foundry.page.markup import Markup, join, number, tag
from foundry.page.quantities import count, percent, share, size

PARTS = {
    "blobs": ("Kernel images and files", 0),
    "parameters": ("Node parameters", 1),
    "process": ("Kernels, graphs, memory ranges", 2),
    "capture": ("Table of blobs, findings", 3),
    "bodies": ("Launches, copies", 4),
    "groups": ("Topologies", 5),
    "allocations": ("Allocations", 6),
    "summary": ("Summary", 7),
    "timeline": ("Timeline", 8),
}
"""Section kinds in words, each with its colour."""
MOST_PARTS = 16
OTHERS = "others"


def sizes(sections: Iterable[tuple[str, int, int]], file_size: int, blobs: Counter[str], outside: int) -> Markup:
    """Draw the sizes. `sections` gives kind, stored and raw size of each; `blobs` unpacked bytes by what they hold."""
    stored: Counter[str] = Counter()
    raw: Counter[str] = Counter()
    for kind, packed, unpacked in sections:
        stored[kind] += packed
        raw[kind] += unpacked
    for kind in sorted(stored, key=lambda kind: (-stored[kind], kind))[MOST_PARTS:]:
        stored[OTHERS] += stored.pop(kind)
        raw[OTHERS] += raw.pop(kind)
    order = sorted(stored, key=lambda kind: (-stored[kind], kind))
    frame = file_size - sum(stored.values())
    bar = tag(
        "div",
        [
            tag(
                "span",
                class_=f"c{_part(kind)[1]}",
                style=f"width:{number(percent(stored[kind], file_size))}%",
                title=f"{_part(kind)[0]}: {size(stored[kind])}",
            )
            for kind in order
        ],
        class_="stack",
        role="img",
        aria_label="Stored bytes by part: "
        + ", ".join(f"{_part(kind)[0]} {share(stored[kind], file_size)}" for kind in order),
    )
    rows = [
        tag(
            "tr",
            tag("th", tag("span", class_=f"swatch c{_part(kind)[1]}"), _part(kind)[0], scope="row"),
            tag("td", size(stored[kind]), class_="number"),
            tag("td", share(stored[kind], file_size), class_="number"),
            tag("td", size(raw[kind]), class_="number"),
            tag("td", _ratio(raw[kind], stored[kind]), class_="number"),
        )
        for kind in order
    ]
    rows.append(
        tag(
            "tr",
            tag("th", tag("span", class_="swatch rest"), "Header, table of contents, footer", scope="row"),
            tag("td", size(frame), class_="number"),
            tag("td", share(frame, file_size), class_="number"),
            tag("td", size(frame), class_="number"),
            tag("td", "", class_="number"),
        )
    )
    total = tag(
        "tr",
        tag("th", "All", scope="row"),
        tag("td", size(file_size), class_="number"),
        tag("td", "100%", class_="number"),
        tag("td", size(sum(raw.values()) + frame), class_="number"),
        tag("td", _ratio(sum(raw.values()) + frame, file_size), class_="number"),
    )
    heads = [("Part", ""), ("Stored", "number"), ("Share", "number"), ("Unpacked", "number"), ("Packed", "number")]
    table = tag(
        "table",
        tag("thead", tag("tr", [tag("th", text, class_=kind or None, scope="col") for text, kind in heads])),
        tag("tbody", rows),
        tag("tfoot", total),
    )
    return join(
        bar, tag("div", table, class_="scroll", tabindex=0, role="group", aria_label="Sizes"), _held(blobs, outside)
    )


def _part(kind: str) -> tuple[str, int]:
    return PARTS.get(kind, ("Other sections" if kind == OTHERS else f"Section {kind}", 9))


def _ratio(raw: int, stored: int) -> str:
    return f"{raw / stored:.1f} : 1" if stored else ""


def _held(blobs: Counter[str], outside: int) -> Markup | None:
    whole = sum(blobs.values())
    if not whole and not outside:
        return None
    rows = [
        tag(
            "li",
            tag("span", name, class_="name"),
            tag("span", tag("i", style=f"width:{number(percent(value, whole))}%"), class_="track"),
            tag("span", size(value), class_="much"),
        )
        for name, value in sorted(blobs.items(), key=lambda item: (-item[1], item[0]))
    ]
    thin = (
        tag(
            "p",
            f"{count(outside, 'image')} of them are not in this file: a thin archive leaves out what lies in "
            "library files, and a restore takes it from there.",
            class_="note",
        )
        if outside
        else None
    )
    return join(tag("h3", "What the images and files are (unpacked)"), tag("ul", rows, class_="bars"), thin)
