"""What a session tells while it runs; the command line shows it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


class Listener:
    """Hears nothing. The command line gives one that speaks."""

    def note(self, text: str) -> None:
        """Hear something good to know."""

    def warn(self, text: str) -> None:
        """Hear something that the user should act upon."""

    def step(self, text: str) -> AbstractContextManager[object]:
        """Show a step that may take long, for as long as the context lasts."""
        return nullcontext()
