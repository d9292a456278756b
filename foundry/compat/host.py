"""Compares what an archive was captured on with a machine, item by item. Pure: what is here is handed in.

The levels follow what the hook does at `cuInit`: what it refuses is refused here too, with both values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from foundry.compat import codes, compare
from foundry.compat.compare import VERSION, Find, Library
from foundry.compat.items import Item, Level, judged
from foundry.compat.probe import Device as DeviceHere
from foundry.compat.probe import Machine

if TYPE_CHECKING:
    from foundry.archive.heads import BlobEntry
    from foundry.model import Device, Process

_GIBIBYTE = 1 << 30
_LEAST_ARENA = 256 * _GIBIBYTE
_VIRTUAL, _MIG = 1, 2
_PROHIBITED = 2


class Head(Protocol):
    """What is compared of an archive's head."""

    @property
    def context(self) -> Mapping[str, str]:
        """What the session knew."""

    @property
    def packages(self) -> Mapping[str, str]:
        """Versions of Python distributions."""

    @property
    def blobs(self) -> Sequence[BlobEntry]:
        """Its blobs, some of which may lie in libraries."""


class Archive(Protocol):
    """What is compared of an archive; `foundry.archive.open_archive` gives one."""

    @property
    def head(self) -> Head:
        """What it says of the whole."""

    def processes(self) -> Iterable[Process]:
        """Give its processes, one after the other."""


@dataclass(frozen=True)
class Here:
    """What a restore would meet. `arguments` are masked, and None if no command was named.

    `library` tells what build id a library of that name has here, the same one if any has it: empty if it has none,
    None if it is not found.
    `hook_fault` tells why there is no usable hook; empty if there is one. `allowed` are codes that may differ.
    """

    machine: Machine
    simulated: bool
    arguments: Sequence[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    hook_fault: str = ""
    library: Find | None = None
    allowed: Collection[str] = ()


def examine(archive: Archive, here: Here) -> list[Item]:
    """Compare everything, worst first. Holds one process at a time."""
    head = archive.head
    items: list[Item] = []
    simulated: set[bool] = set()
    ranks: list[Mapping[str, str]] = []
    libraries: set[Library] = set()
    restorable = 0
    for process in archive.processes():
        simulated.add(process.simulated)
        ranks.append(process.ranks)
        restorable += sum(graph.restorable for graph in process.graphs)
        libraries.update(compare.origins(process.images))
        items += _process(process, here)
    needed = {Library(blob.library.name, blob.library.build_id) for blob in head.blobs if blob.library}
    return judged(
        [
            *_general(simulated, restorable, here),
            *items,
            *compare.release(head.context, here.machine.release, simulated=here.simulated),
            *compare.ranks(ranks, here.environment),
            *compare.command(head.context, here.arguments, here.environment),
            *compare.packages(head.packages, here.packages),
            *compare.libraries(needed, here.library, needed=True),
            *compare.libraries(libraries - needed, here.library, needed=False),
            *_foundry(head.context, here),
        ],
        here.allowed,
    )


def _general(simulated: set[bool], restorable: int, here: Here) -> Iterator[Item]:
    if here.hook_fault:
        yield Item(codes.NO_HOOK, "hook", "needs one", here.hook_fault, Level.REFUSE)
    yield compare.graphs(restorable)
    if here.machine.fault:
        yield Item(codes.NO_DRIVER, "driver", "needs one", here.machine.fault, Level.REFUSE)
    yield compare.simulated(simulated, here.simulated)


def _process(process: Process, here: Here) -> Iterator[Item]:
    machine = here.machine
    version = process.driver_version
    if machine.version:
        level = Level.SAME if machine.version == version else Level.NOTE
        level = Level.REFUSE if machine.version < version else level
        yield Item(
            codes.DRIVER, "CUDA of the driver", _version(version), _version(machine.version), level, process.role
        )
    else:
        yield Item(codes.DRIVER, "CUDA of the driver", _version(version), "unknown", Level.UNKNOWN, process.role)
    known = {device.ordinal: device for device in machine.devices}
    answered = bool(machine.devices) or not machine.fault
    wanted = [device for device in process.devices if device.base] or list(process.devices)
    if answered and wanted:
        most = max(device.ordinal for device in wanted) + 1
        level = Level.SAME if len(known) >= most else Level.REFUSE
        yield Item(codes.DEVICES, "number of GPUs", f"{most} or more", str(len(known)), level, process.role)
    for device in wanted:
        where = f"{process.role}, GPU {device.ordinal}"
        found = known.get(device.ordinal)
        if found is not None:
            yield from _device(device, found, where)
            yield _memory(process, device, found, where)
        elif not answered:
            yield Item(codes.GPU_MODEL, "GPU model", device.name, "unknown", Level.UNKNOWN, where)


def _device(captured: Device, found: DeviceHere, where: str) -> Iterator[Item]:
    def item(code: str, what: str, archive: object, here: object) -> Item:
        level = Level.SAME if archive == here else Level.REFUSE
        return Item(code, what, str(archive), str(here), level, where)

    yield item(codes.GPU_MODEL, "GPU model", captured.name, found.name)
    yield item(
        codes.COMPUTE,
        "compute capability",
        f"{captured.compute_major}.{captured.compute_minor}",
        f"{found.compute_major}.{found.compute_minor}",
    )
    yield item(codes.MULTIPROCESSORS, "multiprocessors", captured.multiprocessors, found.multiprocessors)
    yield item(codes.MIG, "MIG slice", _yes(bool(captured.flags & _MIG)), _yes(found.mig))
    able = bool(captured.flags & _VIRTUAL)
    level = Level.SAME if found.virtual_memory else Level.REFUSE
    yield Item(codes.VIRTUAL_MEMORY, "virtual memory", _yes(able), _yes(found.virtual_memory), level, where)
    if captured.arena_size:
        own = arena_size(found.total_memory)
        level = Level.SAME if own == captured.arena_size else Level.NOTE
        yield Item(codes.ARENAS, "size of an arena", _gib(captured.arena_size), _gib(own), level, where)
    if found.compute_mode == _PROHIBITED:
        yield Item(codes.COMPUTE_MODE, "compute mode", "not recorded", "prohibited", Level.REFUSE, where)


def arena_size(total_memory: int) -> int:
    """Give the size of an arena that a capture would reserve on a GPU of this size; a restore keeps the recorded."""
    return max(_LEAST_ARENA, -(-2 * total_memory // _GIBIBYTE) * _GIBIBYTE)


def _memory(process: Process, captured: Device, found: DeviceHere, where: str) -> Item:
    needed = peak(process, captured.ordinal)
    free = found.free_memory if found.free_memory is not None else found.total_memory
    kind = "free" if found.free_memory is not None else "in all"
    level = Level.SAME if needed <= free else Level.WARN
    return Item(codes.MEMORY, "device memory", f"{_gib(needed)} at most in use", f"{_gib(free)} {kind}", level, where)


def peak(process: Process, ordinal: int) -> int:
    """Tell how many bytes of a device the process had at most at one time."""
    import numpy as np

    rows = process.allocations
    chosen = np.flatnonzero(rows["device"] == ordinal)
    if not len(chosen):
        return 0
    taken = rows["taken"][chosen].astype(np.int64)
    steps = np.concatenate([rows["born"][chosen], rows["died"][chosen]])
    change = np.concatenate([taken, -taken])
    order = np.lexsort((change, steps))
    return int(np.cumsum(change[order]).max(initial=0))


def _foundry(context: Mapping[str, str], here: Here) -> Iterator[Item]:
    before = context.get(VERSION, "")
    if before and here.version:
        yield Item(codes.VERSION, "foundry", before, here.version, Level.SAME if before == here.version else Level.NOTE)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if number else "unknown"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _gib(size: int) -> str:
    if size < _GIBIBYTE:
        return f"{size / (1 << 20):.0f} MiB"
    return f"{size / _GIBIBYTE:.1f} GiB"
