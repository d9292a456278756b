"""Signals as a terminal gives them: under nohup, or in the background, the programs of a test would ignore some."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
