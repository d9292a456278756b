"""Decides before anything is loaded whether an archive may be used here. The hook decides the rest at cuInit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

from foundry import env
from foundry.errors import MismatchError

GPU_MODEL = "mismatch-gpu-model"
SIMULATED = "mismatch-simulated"
NO_GRAPHS = "mismatch-no-graphs"

ARGUMENTS = "argv"
"""Key of an archive's context: the masked argument vector, as JSON."""
VARIABLE = "env."
"""Prefix of a context key that holds an allow-listed variable."""
VERSION = "foundry"
"""Key of an archive's context: the version of Foundry that captured."""
RELEASE = "driver_release"
"""Key of an archive's context: the driver's own version, such as 580.159.04."""


class Device(Protocol):
    """What the gate must know of a GPU."""

    @property
    def name(self) -> str:
        """The model."""


class Process(Protocol):
    """What the gate must know of a process."""

    @property
    def simulated(self) -> bool:
        """Whether it ran on the simulator."""

    @property
    def devices(self) -> Sequence[Device]:
        """Its GPUs."""


class Archive(Protocol):
    """What the gate must know of an archive."""

    @property
    def context(self) -> Mapping[str, str]:
        """What the session knew."""

    @property
    def processes(self) -> Sequence[Process]:
        """Its processes."""


def require_usable(archive: Archive, models: Sequence[str], *, simulated: bool) -> None:
    """Raise MismatchError if the archive comes from another GPU model, or from the simulator where this is none.

    `models` are the GPUs that the command will see; empty if they are not known.
    """
    of_simulator = any(process.simulated for process in archive.processes)
    if of_simulator and not simulated:
        raise MismatchError(
            "the archive was captured on the simulator, and this restore is not simulated",
            code=SIMULATED,
            hint="add `--sim`, or capture on this machine's GPU",
        )
    if simulated and not of_simulator:
        raise MismatchError(
            "the archive was captured on a real GPU, and this restore is simulated",
            code=SIMULATED,
            hint="leave out `--sim`, or capture with `--sim`",
        )
    captured = sorted({device.name for process in archive.processes for device in process.devices})
    if captured and models and not any(_maybe_same(one, other) for one in captured for other in models):
        raise MismatchError(
            f"the archive was captured on {_quoted(captured)}, and this machine has {_quoted(sorted(set(models)))}",
            code=GPU_MODEL,
            hint="capture on this GPU model: `foundry capture -- CMD`",
        )


def _maybe_same(captured: str, model: str) -> bool:
    """Tell whether two names may be of one model: a MIG slice's begins like its GPU's. The hook compares exactly."""
    one, other = captured.casefold(), model.casefold()
    return one.startswith(other) or other.startswith(one)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def differences(archive: Archive, arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Name what is not as it was at the capture, and may be why graphs are given up. `arguments` are masked."""
    notes = []
    captured = captured_arguments(archive.context)
    if captured and captured[1:] != list(arguments[1:]):
        import shlex

        notes.append(f"captured with other arguments: `{shlex.join(captured)}`")
    for name in env.ALLOWED_VARIABLES:
        before, now = archive.context.get(VARIABLE + name), environment.get(name)
        if captured and before != now:
            notes.append(f"{name} is {_value(now)}, at the capture it was {_value(before)}")
    return notes


def captured_arguments(context: Mapping[str, str]) -> list[str]:
    """Read the masked command line of a capture; empty if it is not told."""
    try:
        return [str(word) for word in json.loads(context.get(ARGUMENTS, "null") or "null") or ()]
    except (ValueError, TypeError):
        return []


def _value(value: str | None) -> str:
    return "not set" if value is None else f"`{value}`"
