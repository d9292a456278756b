"""Whether a restored command may have its driver made ready before it asks, behind its own start.

The capture says what stands against it: a process that forks before it uses the driver, or children of forks that use
it, would find a driver that is of no use to them; variables that the driver reads, or flags of the context, may be
set only later.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foundry.archive import Outline

NOTED = "early"
"""Name of the note in a folder of images: `ROLE:DEVICE,DEVICE`, or empty."""
AS_COMMAND = "start_as_command"
"""Counter of the process that was the command itself."""
IN_FORK = "start_in_fork"
AGAINST = ("start_forks", "start_changed_variables", "start_context_flags")


def of_processes(processes: Sequence[Outline]) -> str:
    """Name the process that may begin early, and the devices whose primary contexts it had; empty if none may."""
    if any(process.counters.get(IN_FORK) for process in processes):
        return ""
    commands = [process for process in processes if process.counters.get(AS_COMMAND)]
    if len(commands) != 1 or any(commands[0].counters.get(name) for name in AGAINST):
        return ""
    devices = sorted(commands[0].primary)
    return f"{commands[0].role}:{','.join(map(str, devices))}" if devices else ""


def note(begins: str, folder: Path) -> None:
    """Write it down for later starts."""
    (folder / NOTED).write_text(begins, encoding="utf-8")


def noted(folder: Path) -> str:
    """Read what was written down; empty if nothing was."""
    try:
        return (folder / NOTED).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
