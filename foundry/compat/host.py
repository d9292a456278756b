"""Compares what an archive was captured on with a machine, item by item. Pure: what is here is handed in.

The levels follow what the hook does at `cuInit`: what it refuses is refused here too, with both values.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from foundry import env
from foundry.compat.gate import GPU_MODEL, NO_GRAPHS, RELEASE, SIMULATED, VARIABLE, VERSION, captured_arguments
from foundry.compat.items import Item, Level, worst_first
from foundry.compat.probe import Device as DeviceHere
from foundry.compat.probe import Machine

if TYPE_CHECKING:
    from foundry.archive.heads import BlobEntry
    from foundry.model import Device, Process

NO_HOOK = "host-no-hook"
NO_DRIVER = "host-no-driver"
DEVICES = "host-devices"
VIRTUAL_MEMORY = "host-virtual-memory"
MEMORY = "host-memory"
COMPUTE_MODE = "host-compute-mode"
COMPUTE = "mismatch-compute-capability"
MULTIPROCESSORS = "mismatch-multiprocessors"
MIG = "mismatch-mig"
ARENAS = "mismatch-arenas"
DRIVER = "mismatch-driver"
RELEASE_CODE = "mismatch-driver-release"
ARGUMENTS_CODE = "mismatch-arguments"
VARIABLE_CODE = "mismatch-variable"
RANKS = "mismatch-ranks"
PACKAGE_CODE = "mismatch-package"
LIBRARY = "mismatch-library"
LIBRARY_NEEDED = "library-missing"
VERSION_CODE = "mismatch-foundry"

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


@dataclass(frozen=True, order=True)
class Library:
    """A library file, by its base name, that kernel images came from."""

    name: str
    build_id: str


@dataclass(frozen=True)
class Here:
    """What a restore would meet. `arguments` are masked, and None if no command was named.

    `library` tells what build id a library of that name has here, the same one if any has it: empty if it has none,
    None if it is not found.
    `hook_fault` tells why there is no usable hook; empty if there is one.
    """

    machine: Machine
    simulated: bool
    arguments: Sequence[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    hook_fault: str = ""
    library: Callable[[Library], str | None] | None = None


def examine(archive: Archive, here: Here) -> list[Item]:
    """Compare everything, worst first. Holds one process at a time."""
    head = archive.head
    items: list[Item] = []
    simulated: set[bool] = set()
    ranks: dict[str, None] = {}
    libraries: set[Library] = set()
    restorable = 0
    for process in archive.processes():
        simulated.add(process.simulated)
        ranks.update({f"{name}={value}": None for name, value in process.ranks.items()})
        restorable += sum(graph.restorable for graph in process.graphs)
        libraries.update(_libraries(process))
        items += _process(process, here)
    needed = {Library(blob.library.name, blob.library.build_id) for blob in head.blobs if blob.library}
    return worst_first(
        [
            *_general(simulated, restorable, here),
            *items,
            *_release(head.context, here),
            *_ranks(list(ranks), here),
            *_command(head.context, here),
            *_packages(head.packages, here),
            *_found_libraries(needed, here, needed=True),
            *_found_libraries(libraries - needed, here, needed=False),
            *_foundry(head.context, here),
        ]
    )


def _general(simulated: set[bool], restorable: int, here: Here) -> Iterator[Item]:
    if here.hook_fault:
        yield Item(NO_HOOK, "hook", "needs one", here.hook_fault, Level.REFUSE)
    level = Level.SAME if restorable else Level.REFUSE
    yield Item(NO_GRAPHS, "restorable graphs", str(restorable), "at least 1 is needed", level)
    if here.machine.fault:
        yield Item(NO_DRIVER, "driver", "needs one", here.machine.fault, Level.REFUSE)
    names = " and ".join(_driver_kind(value) for value in sorted(simulated)) or "none"
    same = simulated == {here.simulated} or not simulated
    yield Item(SIMULATED, "simulated", names, _driver_kind(here.simulated), Level.SAME if same else Level.REFUSE)


def _driver_kind(simulated: bool) -> str:
    return "the simulator" if simulated else "a real driver"


def _process(process: Process, here: Here) -> Iterator[Item]:
    machine = here.machine
    version = process.driver_version
    if machine.version:
        level = Level.SAME if machine.version == version else Level.NOTE
        level = Level.REFUSE if machine.version < version else level
        yield Item(DRIVER, "CUDA of the driver", _version(version), _version(machine.version), level, process.role)
    else:
        yield Item(DRIVER, "CUDA of the driver", _version(version), "unknown", Level.UNKNOWN, process.role)
    known = {device.ordinal: device for device in machine.devices}
    answered = bool(machine.devices) or not machine.fault
    wanted = [device for device in process.devices if device.base] or list(process.devices)
    if answered and wanted:
        most = max(device.ordinal for device in wanted) + 1
        level = Level.SAME if len(known) >= most else Level.REFUSE
        yield Item(DEVICES, "number of GPUs", f"{most} or more", str(len(known)), level, process.role)
    for device in wanted:
        where = f"{process.role}, GPU {device.ordinal}"
        found = known.get(device.ordinal)
        if found is not None:
            yield from _device(device, found, where)
            yield _memory(process, device, found, where)
        elif not answered:
            yield Item(GPU_MODEL, "GPU model", device.name, "unknown", Level.UNKNOWN, where)


def _device(captured: Device, found: DeviceHere, where: str) -> Iterator[Item]:
    def item(code: str, what: str, archive: object, here: object) -> Item:
        level = Level.SAME if archive == here else Level.REFUSE
        return Item(code, what, str(archive), str(here), level, where)

    yield item(GPU_MODEL, "GPU model", captured.name, found.name)
    yield item(
        COMPUTE,
        "compute capability",
        f"{captured.compute_major}.{captured.compute_minor}",
        f"{found.compute_major}.{found.compute_minor}",
    )
    yield item(MULTIPROCESSORS, "multiprocessors", captured.multiprocessors, found.multiprocessors)
    yield item(MIG, "MIG slice", _yes(bool(captured.flags & _MIG)), _yes(found.mig))
    able = bool(captured.flags & _VIRTUAL)
    level = Level.SAME if found.virtual_memory else Level.REFUSE
    yield Item(VIRTUAL_MEMORY, "virtual memory", _yes(able), _yes(found.virtual_memory), level, where)
    if captured.arena_size:
        yield item(ARENAS, "size of an arena", _gib(captured.arena_size), _gib(arena_size(found.total_memory)))
    if found.compute_mode == _PROHIBITED:
        yield Item(COMPUTE_MODE, "compute mode", "not recorded", "prohibited", Level.REFUSE, where)


def arena_size(total_memory: int) -> int:
    """Give the size of an arena that the hook would reserve on a GPU of this size."""
    return max(_LEAST_ARENA, -(-2 * total_memory // _GIBIBYTE) * _GIBIBYTE)


def _memory(process: Process, captured: Device, found: DeviceHere, where: str) -> Item:
    needed = peak(process, captured.ordinal)
    free = found.free_memory if found.free_memory is not None else found.total_memory
    kind = "free" if found.free_memory is not None else "in all"
    level = Level.SAME if needed <= free else Level.WARN
    return Item(MEMORY, "device memory", f"{_gib(needed)} at most in use", f"{_gib(free)} {kind}", level, where)


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


def _ranks(captured: list[str], here: Here) -> Iterator[Item]:
    now = [f"{name}={here.environment[name]}" for name in env.RANK_VARIABLES if name in here.environment]
    if not captured and not now:
        return
    # The rank variables of this shell are seldom those of the command: a launcher sets them for each worker.
    level = Level.SAME if set(now) <= set(captured) and (captured or not now) else Level.WARN
    yield Item(RANKS, "ranks", ", ".join(captured) or "none", ", ".join(now) or "as the launcher sets them", level)


def _release(context: Mapping[str, str], here: Here) -> Iterator[Item]:
    before, now = context.get(RELEASE, ""), here.machine.release
    if before and not here.simulated:
        level = Level.UNKNOWN if not now else Level.SAME if before == now else Level.NOTE
        yield Item(RELEASE_CODE, "driver release", before, now or "unknown", level)


def _foundry(context: Mapping[str, str], here: Here) -> Iterator[Item]:
    before = context.get(VERSION, "")
    if before and here.version:
        yield Item(VERSION_CODE, "foundry", before, here.version, Level.SAME if before == here.version else Level.NOTE)


def _command(context: Mapping[str, str], here: Here) -> Iterator[Item]:
    captured = captured_arguments(context)
    if captured and here.arguments is not None:
        # The program may lie elsewhere.
        level = Level.SAME if captured[1:] == list(here.arguments[1:]) else Level.WARN
        yield Item(ARGUMENTS_CODE, "command", shlex.join(captured), shlex.join(here.arguments), level)
    if captured:
        for name in env.ALLOWED_VARIABLES:
            before, now = context.get(VARIABLE + name), here.environment.get(name)
            if name in env.RANK_VARIABLES or (before is None and now is None):
                continue
            level = Level.SAME if before == now else Level.WARN
            yield Item(VARIABLE_CODE, name, _value(before), _value(now), level)


def _packages(captured: Mapping[str, str], here: Here) -> Iterator[Item]:
    for name in sorted(captured):
        before, now = captured[name], here.packages.get(name)
        level = Level.SAME if now == before else Level.WARN if here.packages else Level.UNKNOWN
        yield Item(PACKAGE_CODE, name, before, now or ("not found" if here.packages else "unknown"), level)


def _libraries(process: Process) -> Iterator[Library]:
    for image in process.images:
        if image.build_id and image.provenance and image.in_graphs:
            yield Library(image.provenance, image.build_id)


def _found_libraries(libraries: Iterable[Library], here: Here, *, needed: bool) -> Iterator[Item]:
    code = LIBRARY_NEEDED if needed else LIBRARY
    for library in sorted(libraries):
        found = here.library(library) if here.library else None
        if found == library.build_id:
            level, text = Level.SAME, _short(found)
        elif found is None:
            level, text = Level.UNKNOWN, "not found"
        else:
            level, text = Level.WARN, _short(found) or "without a build id"
        if needed and level is not Level.SAME:
            level = Level.REFUSE
        yield Item(code, library.name, _short(library.build_id), text, level)


def _short(build_id: str) -> str:
    return f"build {build_id[:16]}" if build_id else ""


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if number else "unknown"


def _value(value: str | None) -> str:
    return "not set" if value is None else value or "empty"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _gib(size: int) -> str:
    if size < _GIBIBYTE:
        return f"{size / (1 << 20):.0f} MiB"
    return f"{size / _GIBIBYTE:.1f} GiB"
