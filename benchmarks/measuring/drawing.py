"""A few lines of SVG: text, bars, lines, marks. Always the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH = 800
INK, PALE, PAPER = "#1a1a1a", "#d0d0d0", "#ffffff"
FILLS = ("#12355b", "#6f9fc8", "#d9e6f2", "url(#stripes)", PAPER, INK)
"""Told apart by how dark they are, not by their colours."""
DASHES = ("", "8 4", "2 4", "12 4 2 4")
MARKS = ("circle", "square", "triangle", "diamond")
_STRIPES = (
    '<defs><pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="6" height="6" fill="{PAPER}"/><rect width="2" height="6" fill="{INK}"/></pattern></defs>'
)


class Drawing:
    """A picture that grows by what is drawn, on white, so that it can be read on a dark page too."""

    def __init__(self, height: int, title: str, note: str) -> None:
        self.height = height
        self._title = title
        self._parts: list[str] = []
        self.text(20, 30, title, size=18, weight="bold")
        self.text(20, 52, note, size=13)

    def text(self, x: float, y: float, text: str, *, size: int = 13, anchor: str = "start", weight: str = "") -> None:
        """Write a line; `y` is where it stands on."""
        bold = f' font-weight="{weight}"' if weight else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{bold}'
            f' stroke="{PAPER}" stroke-width="3" paint-order="stroke">{escape(text)}</text>'
        )

    def bar(self, x: float, y: float, width: float, height: float, fill: int) -> None:
        """Draw a bar with an outline."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" fill="{FILLS[fill]}"'
            f' stroke="{INK}" stroke-width="0.75"/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, *, colour: str = INK, width: float = 1.0) -> None:
        """Draw a straight line."""
        self._parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"'
            f' stroke-width="{width}"/>'
        )

    def curve(self, points: Sequence[tuple[float, float]], style: int) -> None:
        """Join points by a line of that style, with its mark at each."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = f' stroke-dasharray="{DASHES[style]}"' if DASHES[style] else ""
        self._parts.append(f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="2"{dash}/>')
        for x, y in points:
            self.mark(x, y, style)

    def mark(self, x: float, y: float, style: int) -> None:
        """Draw a mark."""
        corners = {
            "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
            "triangle": ((0, -5), (5, 4), (-5, 4)),
            "diamond": ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
        }
        colour = f'fill="{PAPER}" stroke="{INK}" stroke-width="1.5"'
        if MARKS[style] == "circle":
            self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" {colour}/>')
            return
        path = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in corners[MARKS[style]])
        self._parts.append(f'<polygon points="{path}" {colour}/>')

    def legend(self, x: float, y: float, names: Sequence[str]) -> None:
        """Say what the fills stand for, in a row."""
        for number, name in enumerate(names):
            self.bar(x, y - 11, 16, 12, number)
            self.text(x + 22, y, name)
            x += 46 + 7.2 * len(name)

    def svg(self) -> str:
        """Give the whole picture."""
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}"'
            f' height="{self.height}" role="img" font-family="Helvetica, Arial, sans-serif" fill="{INK}">',
            f"<title>{escape(self._title)}</title>",
            _STRIPES,
            f'<rect width="{WIDTH}" height="{self.height}" fill="{PAPER}"/>',
            *self._parts,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def ticks(most: float, count: int = 5) -> list[float]:
    """Give round numbers from 0 to the first that is no less than the greatest value."""
    step = most / count
    power = 10.0
    while power > step:
        power /= 10
    while power * 10 <= step:
        power *= 10
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= step)
    found = [0.0]
    while found[-1] < most * (1 - 1e-9):
        found.append(step * len(found))
    return found
