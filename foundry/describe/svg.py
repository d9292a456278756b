"""Draws a graph as SVG: valid XML on its own, light and dark by the reader's setting, names in full as tooltips."""

from __future__ import annotations

from collections.abc import Sequence

from foundry.describe import layout
from foundry.describe.captions import clean, explained, label, shortened
from foundry.describe.chains import Folded, Piece, fold
from foundry.describe.documents import Body, Graph, Node
from foundry.describe.graphs import title
from foundry.describe.layout import Layout, Size

ROW, WIDTH, PADDING, MARGIN, HEADING = 17, 330, 5, 16, 26
LONGEST_LABEL = 40
MOST_ROWS = 40
"""Rows of a box; of a longer chain the middle is left out, and counted."""
MOST_BODIES = 32
GAP = Size(26, 30)

STYLE = """
svg.graph { --back: #fff; --box: #f6f7f9; --line: #c3c8d0; --text: #1c2128; --faint: #667080; --edge: #8a93a1;
  --kernel: #3b6fd4; --memory: #2a9d6f; --event: #b7791f; --refused: #c93c37; background: var(--back);
  font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media (prefers-color-scheme: dark) { svg.graph { --back: #14171c; --box: #1d2229; --line: #39424e; --text: #e2e6ec;
  --faint: #97a1b0; --edge: #6f7a89; --kernel: #7ea6f4; --memory: #5cc99a; --event: #e0b060; --refused: #f0837e; } }
svg.graph text { fill: var(--text); } svg.graph .faint { fill: var(--faint); }
svg.graph .heading { font-size: 13px; font-weight: 600; }
svg.graph .box { fill: var(--box); stroke: var(--line); } svg.graph .many { stroke: var(--kernel); stroke-width: 1.5; }
svg.graph .edge { fill: none; stroke: var(--edge); stroke-width: 1.2; } svg.graph .special { stroke-dasharray: 4 3; }
svg.graph .mark, svg.graph .node { fill: var(--faint); } svg.graph .kernel { fill: var(--kernel); }
svg.graph .memcpy, svg.graph .memset { fill: var(--memory); }
svg.graph .wait_event, svg.graph .event_record { fill: var(--event); } svg.graph .refused { fill: var(--refused); }
"""


def draw(graph: Graph, *, repeats: bool = True, most_rows: int | None = MOST_ROWS) -> str:
    """Draw a graph and its child graphs. `repeats` shows what repeats in a chain once."""
    parts: list[str] = []
    y, width = 0.0, 0.0
    bodies = graph["contents"][:MOST_BODIES]
    for body in bodies:
        drawn, size = _body(graph, body, y, repeats, most_rows)
        parts += drawn
        y, width = y + size.height, max(width, size.width)
    left_out = len(graph["contents"]) - len(bodies)
    if left_out:
        parts.append(_text(MARGIN, y + ROW, f"and {left_out} more child graphs", "faint"))
        y += ROW + MARGIN
    wide, tall = width + 2 * MARGIN, y + MARGIN
    name = clean(f"graph {title(graph)}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" width="{wide:.0f}" height="{tall:.0f}" '
        f'viewBox="0 0 {wide:.0f} {tall:.0f}">\n<title>{name}</title>\n<style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _body(graph: Graph, body: Body, top: float, repeats: bool, most_rows: int | None) -> tuple[list[str], Size]:
    folded = fold(body, repeats=repeats)
    shown = [_shown(piece, most_rows) for piece in folded.pieces]
    sizes = [
        Size(WIDTH, len(rows) * ROW + 2 * PADDING + (ROW if piece.times > 1 else 0))
        for piece, rows in zip(folded.pieces, shown, strict=True)
    ]
    placed = layout.arrange(sizes, [(link.start, link.end) for link in folded.links], gap=GAP)
    y = top + MARGIN + HEADING
    parts = [_text(MARGIN, top + MARGIN + 12, _heading(graph, body), "heading")]
    parts.append(f'<g transform="translate({MARGIN} {y:.0f})">')
    parts += _edges(folded, placed)
    for piece, rows, size, place in zip(folded.pieces, shown, sizes, placed.places, strict=True):
        parts += _box(body["nodes"], piece, rows, size, place.x, place.y)
    parts.append("</g>")
    return parts, Size(max(placed.width, WIDTH), MARGIN + HEADING + placed.height + MARGIN)


def _heading(graph: Graph, body: Body) -> str:
    counts = f"{len(body['nodes'])} nodes, {len(body['edges'])} edges"
    if body["number"] == 0:
        return f"{title(graph)}: {counts}"
    inside = f" of child graph {body['parent_body']}" if body["parent_body"] else ""
    return f"child graph {body['number']}, node {body['parent_node']}{inside}: {counts}"


def _shown(piece: Piece, most: int | None) -> list[int | None]:
    """Choose the rows to draw; None stands for those left out."""
    rows: list[int | None] = [*range(len(piece.rows))]
    if most is None or len(rows) <= most:
        return rows
    head = most * 3 // 4
    return [*rows[:head], None, *rows[len(rows) - (most - head - 1) :]]


def _edges(folded: Folded, placed: Layout) -> list[str]:
    parts = []
    for link, route in zip(folded.links, placed.routes, strict=True):
        (x, y), *rest = route
        path = [f"M{x:.1f} {y:.1f}"]
        for to_x, to_y in rest:
            bend = max(abs(to_y - y) / 2, 8)
            path.append(f"C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}")
            x, y = to_x, to_y
        told = f"<title>{clean(link.text)}</title>" if link.text else ""
        kind = "edge special" if link.text else "edge"
        parts.append(f'<path class="{kind}" d="{" ".join(path)}">{told}</path>')
        parts.append(f'<path class="mark" d="M{x:.1f} {y:.1f}l-3.5 -6h7z"/>')
    return parts


def _box(nodes: Sequence[Node], piece: Piece, rows: Sequence[int | None], size: Size, x: float, y: float) -> list[str]:
    kind = "box many" if piece.times > 1 else "box"
    parts = [
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{size.width:.0f}" height="{size.height:.0f}" rx="4"/>'
    ]
    line = y + PADDING + 12
    if piece.times > 1:
        text = f"{piece.times} x {len(piece.rows)} node{'s' if len(piece.rows) > 1 else ''}"
        parts.append(_text(x + 10, line, text, "faint"))
        line += ROW
    for row in rows:
        if row is None:
            parts.append(_text(x + 10, line, f"… {len(piece.rows) - len(rows) + 1} more …", "faint"))
        else:
            parts.append(_row(nodes, piece, row, x, line))
        line += ROW
    return parts


def _row(nodes: Sequence[Node], piece: Piece, row: int, x: float, line: float) -> str:
    node = nodes[piece.rows[row][0]]
    kind = "refused" if node["reason"] else node["type"]
    wait = f"\nwaits: {piece.links[row]}" if piece.links[row] else ""
    told = clean(f"{_which(piece.rows[row])}: {explained(node)}{wait}")
    mark = "⇢ " if piece.links[row] else ""
    return (
        f"<g><title>{told}</title>"
        f'<rect class="node {clean(kind)}" x="{x + 6:.1f}" y="{line - 9:.1f}" width="3" height="11"/>'
        + _text(x + 14, line, str(node["index"]), "faint")
        + _text(x + 46, line, mark + shortened(label(node), LONGEST_LABEL), "")
        + "</g>"
    )


def _which(indices: Sequence[int]) -> str:
    if len(indices) == 1:
        return f"node {indices[0]}"
    some = ", ".join(map(str, indices[:4]))
    return f"nodes {some}{f', … {indices[-1]}' if len(indices) > 4 else ''} ({len(indices)} times)"


def _text(x: float, y: float, text: str, kind: str) -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}">{clean(text)}</text>'
