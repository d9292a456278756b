"""What an adapter writes down for the restore of the same process, before and beside its graphs.

An archive keeps text with graphs only, so a note is a graph without nodes, under a set of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
from typing import Any

from foundry import capi
from foundry.capi import Hook
from foundry.errors import FoundryError

SET = "notes"


def keep(hook: Hook, name: str, document: dict[str, Any]) -> None:
    """Write a note. A context must be current in this thread, and no capture begun."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
    with capi.labelled(hook, SET, name) as label:
        if driver.cuGraphCreate(ctypes.byref(graph), 0):
            return
        made = driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        label.metadata = json.dumps(document)
    if not made:
        driver.cuGraphExecDestroy(executable)
    driver.cuGraphDestroy(graph)


def give_up(hook: Hook, name: str, reason: str) -> None:
    """Tell the report why nothing of what belongs to a note is restored."""
    with contextlib.suppress(FoundryError):
        hook.give_up(hook.find(SET, name), reason)


def kept(hook: Hook, name: str) -> dict[str, Any] | None:
    """Read the note of the capture, None if it left none."""
    with contextlib.suppress(FoundryError, ValueError):
        document = json.loads(hook.metadata(hook.find(SET, name)) or "null")
        return document if isinstance(document, dict) else None
    return None
