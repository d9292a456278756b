"""Tells when a server is ready: it answers a URL, it prints a line, or it says so itself through the C interface."""

from __future__ import annotations

import re
import threading
from typing import Protocol

from foundry.errors import UsageError
from foundry.session.status import Status

POLL_SECONDS = 0.25
ANSWER_SECONDS = 2.0


class Watch(Protocol):
    """One sign of readiness."""

    def seen(self) -> str:
        """Tell what was seen, empty as long as nothing was."""

    def close(self) -> None:
        """Stop looking."""


class UrlWatch:
    """Asks a URL until it answers with a status of 200 to 299, in a thread of its own."""

    def __init__(self, url: str) -> None:
        if not re.match(r"(?i)https?://[^/]", url):
            raise UsageError(f"`--ready {url}` is not an http address", hint="`--ready http://127.0.0.1:8000/health`")
        self._url = url
        self._answered = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="foundry-ready", daemon=True)

    @property
    def started(self) -> bool:
        """Whether it asks already."""
        return self._thread.ident is not None

    def start(self) -> None:
        """Start asking; call it after every fork."""
        self._thread.start()

    def seen(self) -> str:
        """Name the URL, once it has answered."""
        return f"{self._url} answers" if self._answered.is_set() else ""

    def close(self) -> None:
        """Stop asking."""
        self._closed.set()

    def _ask(self) -> None:
        import urllib.request
        from http.client import HTTPException

        local = re.match(r"(?i)https?://(localhost|127\.[\d.]+|\[::1\])(?=[:/]|$)", self._url)
        handlers = [urllib.request.ProxyHandler({})] if local else []
        opener = urllib.request.build_opener(*handlers)
        while not self._closed.is_set():
            try:
                with opener.open(self._url, timeout=ANSWER_SECONDS) as answer:
                    if 200 <= answer.status < 300:
                        self._answered.set()
                        return
            except (OSError, HTTPException, ValueError):
                pass
            self._closed.wait(POLL_SECONDS)


class LogWatch:
    """Looks for a regular expression in the lines that the command prints."""

    def __init__(self, pattern: str) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"`--ready-log {pattern}` is not a regular expression: {error}") from error
        self._line = ""

    def look_at(self, line: str) -> None:
        """Take one line of output."""
        if not self._line and self._pattern.search(line):
            self._line = f"it printed `{line.strip()[:80]}`"

    def seen(self) -> str:
        """Tell the line that matched."""
        return self._line

    def close(self) -> None:
        """Nothing to stop."""


class CommitWatch:
    """Looks for the program's own `foundry_commit`."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def seen(self) -> str:
        """Tell that it has called it."""
        self._status.read()
        return "the program says so" if self._status.ready else ""

    def close(self) -> None:
        """Nothing to stop."""
