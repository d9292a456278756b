"""How large a page may get. What no longer fits is left out, and the page says so."""

from __future__ import annotations

from foundry.page.markup import Markup, tag

MOST_CHARACTERS = 3_000_000


class Budget:
    """The room that is left for drawings. Tables and text have limits of their own."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._left = most

    def fit(self, drawn: Markup | None, instead: str) -> Markup | None:
        """Hand the drawing back if there is room for it, else a line that says what is missing."""
        if drawn is None:
            return None
        if len(drawn) > self._left:
            return tag("p", f"{instead} is left out here, to keep this page small.", class_="note")
        self._left -= len(drawn)
        return drawn
