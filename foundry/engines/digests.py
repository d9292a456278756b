"""Digests of a compiler's own files, which its caches ask for before they give anything, computed ahead in a thread."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable

TRITON = ("triton.runtime.cache", "triton_key")
TORCH = ("torch._inductor.codecache", "torch_key")
SWITCH_INTERVAL = 0.0001
"""In seconds."""
LONGEST_WAIT = 10.0
"""In seconds."""

_under_way: list[threading.Thread] = []


def ahead(*functions: tuple[str, str]) -> None:
    """Have functions, each a module and a name, remember what they find, while weights are loaded."""
    found = []
    for module, name in functions:
        with contextlib.suppress(ImportError):
            # Here: imports in two threads at a time may see each other's unfinished modules.
            found.append(getattr(importlib.import_module(module), name, None))
    chosen = [function for function in found if function is not None]
    thread = threading.Thread(target=_compute, args=(chosen,), name="foundry-digests", daemon=True)
    thread.start()
    _under_way.append(thread)


def wait() -> None:
    """Wait for what is under way, before it is asked for: these functions would begin anew beside it."""
    while _under_way:
        _under_way.pop().join(LONGEST_WAIT)


def _compute(functions: list[Callable[[], object]]) -> None:
    kept = sys.getswitchinterval()
    # Each block of a file is read and digested without the interpreter's lock, and would wait so long for it after.
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        for function in functions:
            with contextlib.suppress(Exception):  # it is asked again, and told, where it is needed
                function()
    finally:
        sys.setswitchinterval(kept)
