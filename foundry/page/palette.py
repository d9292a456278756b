"""Colours for kinds of nodes: the most used ones get a hue each, all others share a grey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from foundry.page.picture import Colour

HUES = (
    "#d8622a",
    "#2f80bd",
    "#3a9b70",
    "#c79a2b",
    "#8b64ba",
    "#ce5a8b",
    "#3fa7ae",
    "#8a6a4a",
    "#7f9130",
    "#5b70d2",
    "#b23d3c",
)
REST = "#8d8880"
_SHADES = (0.0, 0.22, -0.2, 0.4, -0.36)


class Palette:
    """Which colour a kind of node has. Kinds are ranked by how often they are used, then by name."""

    def __init__(self, uses: Mapping[str, int]) -> None:
        self.uses = Counter(uses)
        ranked = sorted(uses, key=lambda kind: (-uses[kind], kind))
        self.named = tuple(ranked[: len(HUES)])
        self.others = tuple(ranked[len(HUES) :])
        self._index = {kind: index for index, kind in enumerate(self.named)}

    def index(self, kind: str) -> int:
        """Give the number of a kind's colour; that of the grey is len(HUES)."""
        return self._index.get(kind, len(HUES))

    def colour(self, kind: str) -> str:
        """Give a kind's colour as CSS."""
        return (*HUES, REST)[self.index(kind)]

    def pixel(self, kind: str, variant: int) -> int:
        """Give the pixel value for the variant-th member of a kind."""
        return self.index(kind) * len(_SHADES) + variant % len(_SHADES)


def pixel_colours() -> list[Colour]:
    """List the colours of all pixel values; the last one is transparent."""
    colours = [_shade(hue, amount) for hue in (*HUES, REST) for amount in _SHADES]
    return [*colours, (0, 0, 0)]


def _shade(hue: str, amount: float) -> Colour:
    parts = [int(hue[at : at + 2], 16) for at in (1, 3, 5)]
    toward = 255 if amount > 0 else 0
    red, green, blue = (round(part + (toward - part) * abs(amount)) for part in parts)
    return red, green, blue
