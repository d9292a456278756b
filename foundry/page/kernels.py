"""The kernels of a process's graphs, the most used first."""

from __future__ import annotations

from foundry.describe.kernels import kernels as described
from foundry.model import Process
from foundry.page.markup import Markup, join, number, tag
from foundry.page.nodes import Nodes
from foundry.page.quantities import count, percent, size

MOST_KERNELS = 40


def kernels(process: Process, nodes: Nodes) -> Markup:
    """List the kernels with how often graphs use them."""
    order = sorted((row for row in described(process) if row["uses"]), key=lambda row: (-row["uses"], row["index"]))
    if not order:
        return tag("p", "No graph holds a kernel.", class_="note")
    most, every = order[0]["uses"], sum(row["uses"] for row in order)
    rows = []
    for row in order[:MOST_KERNELS]:
        image = process.images[row["image"]] if row["image"] is not None else None
        family = nodes.family(row["index"])
        name = tag(
            "th",
            tag("span", class_="swatch", style=f"background:{nodes.palette.colour(family)}"),
            tag("span", family if row["readable"] != row["name"] else row["name"], class_="short"),
            tag("code", row["readable"].removeprefix("void "), class_="full", title=row["name"])
            if row["readable"] != row["name"]
            else None,
            scope="row",
        )
        bar = tag("span", tag("i", style=f"width:{number(percent(row['uses'], most))}%"), class_="track")
        rows.append(
            tag(
                "tr",
                name,
                tag("td", f"{row['uses']:,}", class_="number"),
                tag("td", bar, class_="wide", aria_hidden="true"),
                tag("td", f"{row['graphs']:,}", class_="number"),
                tag("td", size(row["parameter_bytes"]), class_="number"),
                tag("td", (image.provenance or "memory") if image else "unknown"),
            )
        )
    heads = [
        ("Kernel", "", True), ("Nodes", "number", True), ("", "wide", False), ("Graphs", "number", True),
        ("Parameters", "number", True), ("Loaded from", "", True),
    ]  # fmt: skip
    head = tag(
        "tr",
        [
            tag("th", text, class_=style or None, scope="col", data_sort=sortable) if text else tag("td", class_=style)
            for text, style, sortable in heads
        ],
    )
    left = order[MOST_KERNELS:]
    rest = sum(row["uses"] for row in left)
    told = (
        f"{count(len(left), 'more kernel')} with {count(rest, 'node')}, of {count(every, 'kernel node')}."
        if left
        else None
    )
    return join(
        tag(
            "div",
            tag("table", tag("thead", head), tag("tbody", rows), class_="kernels"),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_label="Kernels",
        ),
        tag("p", told, class_="note") if told else None,
    )
