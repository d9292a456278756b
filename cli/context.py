"""What all commands share: the command after `--`, how much to say, and the only way to say it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from foundry.session.listener import Listener

PREFIX = "foundry: "


class Context(Listener):
    """One run of `foundry`. Talk goes to standard error, data of commands that run no child to standard output."""

    def __init__(self, command: list[str] | None, environment: Mapping[str, str]) -> None:
        self.command = command
        self.environment = environment
        self.quiet = False

    def note(self, text: str) -> None:
        """Say something good to know, unless quiet."""
        if not self.quiet:
            self._say(text)

    def warn(self, text: str) -> None:
        """Say something that the user should act upon, quiet or not."""
        self._say(f"warning: {text}")

    def step(self, text: str) -> AbstractContextManager[object]:
        """Show that a step is going on, where a person is watching."""
        if self.quiet or not sys.stderr.isatty():
            return nullcontext()
        return _spinner(text)

    def _say(self, text: str) -> None:
        try:
            sys.stderr.write(f"{PREFIX}{text}\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody reads what we say; the command goes on


@contextmanager
def _spinner(text: str) -> Iterator[None]:
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
