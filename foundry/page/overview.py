"""All graphs of a process as one picture: a row a graph, a cell a node, a colour a kind of kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foundry.model import Graph, Process
from foundry.page import picture
from foundry.page.markup import Markup, join, tag, trusted
from foundry.page.nodes import Nodes
from foundry.page.palette import pixel_colours
from foundry.page.quantities import count

MOST_ROWS = 256
MOST_COLUMNS = 2048


def overview(process: Process, nodes: Nodes) -> Markup | None:
    """Draw the picture; None where no graph has a node."""
    shown = process.graphs[:MOST_ROWS]
    longest = max((len(nodes.of_group[int(process.bodies[graph.body])]) for graph in shown), default=0)
    if not longest:
        return None
    columns = min(longest, MOST_COLUMNS)
    colours = pixel_colours()
    values = nodes.pixels()
    pixels = np.full((len(shown), columns), len(colours) - 1, np.uint8)
    for row, graph in enumerate(shown):
        numbers = nodes.of_group[int(process.bodies[graph.body])][:columns]
        pixels[row, : len(numbers)] = values[numbers]
    height = 14 if len(shown) <= 48 else 8 if len(shown) <= 96 else 3
    alternative = (
        f"{count(len(shown), 'graph')} as rows, {count(columns, 'node')} as columns at most; "
        "each cell has the colour of its kernel's kind."
    )
    image = tag(
        "img",
        src=trusted(picture.address(picture.png(pixels, colours))),
        alt=alternative,
        width=columns,
        height=len(shown) * height,
        style=f"height:{len(shown) * height}px",
    )
    rows = tag(
        "div", image, class_="threads" if height >= 8 else None, style=f"--thread:{height}px;min-width:{columns}px"
    )
    return join(
        tag(
            "div",
            tag("div", _labels(shown, height), class_="weave-names", aria_hidden="true"),
            tag("div", rows, class_="weave-cloth scroll", tabindex=0, role="group", aria_label="Nodes of all graphs"),
            class_="weave",
        ),
        _cut(len(process.graphs), longest),
        legend(nodes),
    )


def legend(nodes: Nodes) -> Markup:
    """List the kinds that have a colour of their own, the most used first."""
    palette = nodes.palette
    items = [_item(palette.colour(kind), kind, palette.uses[kind]) for kind in palette.named]
    if palette.others:
        rest = sum(palette.uses[kind] for kind in palette.others)
        items.append(_item(palette.colour(palette.others[0]), count(len(palette.others), "other kind"), rest))
    return tag("ul", items, class_="legend")


def _item(colour: str, kind: str, uses: int) -> Markup:
    swatch = tag("span", class_="swatch", style=f"background:{colour}")
    return tag("li", swatch, tag("span", kind, class_="name"), " ", tag("span", f"{uses:,}", class_="much"))


def _labels(graphs: Sequence[Graph], height: int) -> Markup:
    every = -(-14 // height)
    return join(
        tag(
            "div",
            graph_label(graphs[at]) if at + every <= len(graphs) or every == 1 else None,
            style=f"height:{height * min(every, len(graphs) - at)}px",
        )
        for at in range(0, len(graphs), every)
    )


def graph_label(graph: Graph) -> str:
    """Name a graph by its set and key."""
    return f"{graph.set} {graph.key}".strip() or "(no name)"


def _cut(graphs: int, longest: int) -> Markup | None:
    told = []
    if graphs > MOST_ROWS:
        told.append(f"The first {MOST_ROWS} of {graphs:,} graphs are drawn.")
    if longest > MOST_COLUMNS:
        told.append(f"The first {MOST_COLUMNS:,} nodes of each graph are drawn; the longest has {longest:,}.")
    return tag("p", " ".join(told), class_="note") if told else None
