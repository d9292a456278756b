from __future__ import annotations

import os
import signal

import pytest

from foundry.errors import AbandonedError
from foundry.session.capture_run import _DeferredSignals
from foundry.session.listener import Listener


class Notes(Listener):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_the_first_signal_is_answered_and_the_second_obeyed() -> None:
    listener = Notes()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(AbandonedError) as caught, _DeferredSignals(listener):
        os.kill(os.getpid(), signal.SIGTERM)
        assert listener.notes == ["writing the archive; once more gives it up"]
        os.kill(os.getpid(), signal.SIGINT)
    assert caught.value.exit_code == 128 + signal.SIGINT
    assert signal.getsignal(signal.SIGTERM) is before


def test_ignored_signals_stay_ignored() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _DeferredSignals(Notes()):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, previous)
