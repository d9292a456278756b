"""Judges from files alone, before the command starts, whether an archive may be used here.

The hook judges the rest at cuInit, before the program loads anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from foundry.compat import codes, compare
from foundry.compat.items import Item, Level, judged
from foundry.errors import MismatchError


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

    @property
    def ranks(self) -> Mapping[str, str]:
        """Its rank variables."""

    @property
    def restorable(self) -> int:
        """How many of its graphs can be restored."""


class Archive(Protocol):
    """What the gate must know of an archive."""

    @property
    def context(self) -> Mapping[str, str]:
        """What the session knew."""

    @property
    def packages(self) -> Mapping[str, str]:
        """Versions of Python distributions."""

    @property
    def processes(self) -> Sequence[Process]:
        """Its processes."""


class Start(NamedTuple):
    """What is known of the command and the machine. `arguments` are masked; `models` is empty if they are not known."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    simulated: bool
    models: Sequence[str] = ()
    release: str = ""
    packages: Mapping[str, str] = {}


def examine(archive: Archive, start: Start) -> list[Item]:
    """Compare what the summary of an archive tells."""
    processes = archive.processes
    names = {device.name for process in processes for device in process.devices}
    return [
        compare.simulated((process.simulated for process in processes), start.simulated),
        compare.graphs(sum(process.restorable for process in processes)),
        *compare.models(names, start.models),
        *compare.command(archive.context, start.arguments, start.environment),
        *compare.ranks([process.ranks for process in processes], start.environment),
        *compare.packages(archive.packages, start.packages),
        *compare.release(archive.context, start.release, simulated=start.simulated),
    ]


def pass_through(items: Iterable[Item], allowed: Collection[str]) -> list[Item]:
    """Give the items worst first, what is allowed as such. Raises RefusedError if any of them is refused."""
    result = judged(items, allowed)
    if result and result[0].level is Level.REFUSE:
        raise RefusedError(result)
    return result


class RefusedError(MismatchError):
    """The archive must not be used here. Names all that is refused, with both values.

    `items` holds all items, `codes` those of what is refused.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        refused = [item for item in items if item.level is Level.REFUSE]
        told = "; ".join(map(str, refused))
        hint = codes.hint(item.code for item in refused)
        super().__init__(f"the archive must not be used here: {told}", code=refused[0].code, hint=hint)
        self.items = items
        self.codes = {item.code for item in refused}
