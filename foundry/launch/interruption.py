"""Signals to end that reach Foundry while no command of its runs: what is open is closed in order, and it ends."""

from __future__ import annotations

import os
import signal

from foundry.errors import AbandonedError

TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """From `hold` to `end` it has the signals to end. Those that are ignored stay so.

    Between `begin` and `quiet` the first one raises AbandonedError in the main thread; before and after that they wait:
    `begin` raises for one that came, `end` hands it on.
    """

    def __init__(self) -> None:
        self._previous: dict[int, object] = {}
        self._raises = False
        self._kept = 0

    def hold(self) -> None:
        """Let signals wait."""
        for number in TO_END:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._on_signal)

    def begin(self) -> None:
        """Raise from here on, and for a signal that was waiting."""
        self._raises = True
        if number := self._kept:
            self._kept = 0
            self._raise(number)

    def quiet(self) -> None:
        """Raise no more: what follows must not be cut short."""
        self._raises = False

    def end(self) -> None:
        """Give the signals back to whoever had them."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if self._kept:
            os.kill(os.getpid(), self._kept)

    def _on_signal(self, number: int, _: object) -> None:
        if self._raises:
            self._raise(number)
        self._kept = self._kept or number

    def _raise(self, number: int) -> None:
        self.quiet()
        raise AbandonedError(f"ended by {signal.Signals(number).name}", signal_number=number)
