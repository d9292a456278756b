"""What Python and numpy are told while somebody waits for a command that reads an archive on all cores."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_THREADS = "OPENBLAS_NUM_THREADS"
_INTERVAL = 0.0005
"""Seconds after which a thread hands the interpreter on: others want it only to begin their next stretch of work."""


@contextmanager
def hurried() -> Iterator[None]:
    """Hand the interpreter on at once, look for no garbage, and have numpy start no threads if it is imported within.

    Those are for linear algebra, which Foundry does not use, and begin busily. No command may be started within: it
    would inherit their variable.
    """
    interval, collecting, threads = sys.getswitchinterval(), gc.isenabled(), os.environ.get(_THREADS)
    sys.setswitchinterval(_INTERVAL)
    gc.disable()
    os.environ[_THREADS] = threads or "1"
    try:
        yield
    finally:
        if threads is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = threads
        if collecting:
            gc.enable()
        sys.setswitchinterval(interval)
