"""Memory layout: ranges, the logs of allocations, phases, contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foundry.describe import names
from foundry.diff.report import Change, Kind, Strength, unequal
from foundry.model import NONE, Process

KIND = Kind.MEMORY
SHAPE = ("device", "arena", "ordinal", "size", "taken", "origin")
LIFETIME = ("born", "died", "born_thread", "died_thread")

Digests = Sequence[bytes]


def memory_changes(where: str, left: tuple[Process, Digests], right: tuple[Process, Digests]) -> Iterator[Change]:
    """Compare the memory of two processes. The digests are those of each archive's blobs."""
    before, after = left[0], right[0]
    yield from _device_ranges(where, before, after)
    yield from _logs(where, before, after)
    yield from _listed(where, "memory of others", _ranges(before), _ranges(after))
    yield from _listed(where, "contents of memory", _contents(*left), _contents(*right))
    yield from _phases(where, before, after)


def arena_offsets(process: Process) -> npt.NDArray[np.uint64]:
    """Give the offset of each allocation in its arena."""
    table = process.allocations
    offsets: npt.NDArray[np.uint64] = table["address"].copy()
    for device in process.devices:
        mine = table["device"] == device.ordinal
        start = np.uint64(device.base) + table["arena"][mine].astype(np.uint64) * np.uint64(device.arena_size)
        offsets[mine] -= start
    return offsets


def place_of(process: Process, address: int) -> str:
    """Name an address by its arena and offset, as it stands in captures with other bases."""
    for device in process.devices:
        arena = device.arena(address)
        if arena is not None:
            offset = address - device.base - arena * device.arena_size
            return f"{names.ARENAS[arena]} arena of device {device.ordinal} + {offset:#x}"
    return f"{address:#x}" if address else "address not kept"


def _device_ranges(where: str, before: Process, after: Process) -> Iterator[Change]:
    others = {device.ordinal: device for device in after.devices}
    for device in before.devices:
        other = others.get(device.ordinal)
        if other is None:
            continue  # told with the fingerprint
        place = f"{where}: device {device.ordinal}"
        yield from unequal(KIND, place, "size of an arena", device.arena_size, other.arena_size)
        if device.base != other.base:
            strength = Strength.RELOCATION if device.base and other.base else Strength.DIFFERENT
            yield Change(KIND, place, "address of the range", f"{device.base:#x}", f"{other.base:#x}", strength)


def _logs(where: str, before: Process, after: Process) -> Iterator[Change]:
    tables = before.allocations, after.allocations
    common = min(len(table) for table in tables)
    differs = _differing(tables, SHAPE, common)
    first = int(differs.argmax()) if differs.any() else common
    if first < common or len(tables[0]) != len(tables[1]):
        count = int(differs.sum()) + max(len(table) for table in tables) - common
        sides = _allocation(before, first), _allocation(after, first)
        yield Change(KIND, where, f"allocation log, from allocation {first} on", *sides, count=count)
    moved = np.flatnonzero(arena_offsets(before)[:first] != arena_offsets(after)[:first])
    if len(moved):
        sides = _allocation(before, int(moved[0])), _allocation(after, int(moved[0]))
        what = f"place of allocation {moved[0]} in its arena"
        yield Change(KIND, where, what, *sides, Strength.RELOCATION, len(moved))
    lived = np.flatnonzero(_differing(tables, LIFETIME, first))
    if len(lived):
        row = int(lived[0])
        sides = _lifetime(before, row), _lifetime(after, row)
        yield Change(KIND, where, f"lifetime of allocation {row}", *sides, count=len(lived))


def _differing(
    tables: tuple[npt.NDArray[Any], npt.NDArray[Any]], columns: Sequence[str], count: int
) -> npt.NDArray[np.bool_]:
    found = np.zeros(count, np.bool_)
    for name in columns:
        found |= tables[0][name][:count] != tables[1][name][:count]
    return found


def _allocation(process: Process, row: int) -> str:
    """Describe an allocation by all that finds it in a program."""
    if row >= len(process.allocations):
        return "the log has ended"
    entry = process.allocations[row]
    origin = names.name(names.ORIGINS, int(entry["origin"])).replace("_", "-")
    taken = int(entry["taken"])
    return (
        f"{names.name(names.ARENAS, int(entry['arena']))} allocation {entry['ordinal']} of device {entry['device']}: "
        f"{int(entry['size']):,} bytes" + (f" ({taken:,} taken)" if taken != entry["size"] else "")
        + (f", {origin}" if entry["origin"] else "")
        + f" at +{int(arena_offsets(process)[row]):#x}, step {entry['born']}, thread {entry['born_thread']}"
        + _near(process, int(entry["born"]))
    )  # fmt: skip


def _lifetime(process: Process, row: int) -> str:
    entry = process.allocations[row]
    born = f"made at step {entry['born']} by thread {entry['born_thread']}"
    if entry["died"] == NONE:
        return f"{born}, never freed"
    return f"{born}, freed at step {entry['died']} by thread {entry['died_thread']}"


def _near(process: Process, step: int) -> str:
    """Name the phase that a step is in, or the graph next to it."""
    inside = [phase for phase in process.phases if phase.begin <= step < phase.end]
    if inside:
        return f", in the phase `{inside[-1].name}`"
    later = min((graph for graph in process.graphs if graph.step > step), key=lambda graph: graph.step, default=None)
    if later is not None:
        return f", before the graph {later.name}"
    earlier = max(process.graphs, key=lambda graph: graph.step, default=None)
    return f", after the graph {earlier.name}" if earlier is not None else ""


def _ranges(process: Process) -> list[str]:
    return [
        f"{names.name(names.RANGES, item.kind)} {f'`{item.name}` ' if item.name else ''}"
        f"of {item.size:,} bytes, {f'{item.address:#x}' if item.address else 'address not kept'}, step {item.born}"
        + (f" to {item.died}" if item.died != NONE else "")
        + (f", of {_image(process, item.image)}" if item.image != NONE else "")
        for item in process.ranges
    ]


def _image(process: Process, index: int) -> str:
    image = process.images[index]
    return f"image {image.key.hex()[:12]}" + (f", load {image.instance}" if image.instance else "")


def _contents(process: Process, digests: Digests) -> list[str]:
    return [
        f"{place_of(process, item.address)}: {item.size:,} bytes {digests[item.blob].hex()[:12]}"
        for item in process.contents
    ]


def _phases(where: str, before: Process, after: Process) -> Iterator[Change]:
    sides = [
        [
            f"{'scratch' if phase.kind == 1 else 'named'} phase `{phase.name}`, step {phase.begin}"
            + (f" to {phase.end}" if phase.end != NONE else ", never ended")
            for phase in process.phases
        ]
        for process in (before, after)
    ]
    yield from _listed(where, "phases", *sides)


def _listed(where: str, what: str, before: Sequence[str], after: Sequence[str]) -> Iterator[Change]:
    """Compare two lists: what only one has, else their order. Alike entries count."""
    gone, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
    for left, right in zip(gone.elements(), new.elements(), strict=False):
        yield Change(KIND, where, what, left, right)
    rest = len(list(gone.elements())) - len(list(new.elements()))
    if rest > 0:
        for left in list(gone.elements())[-rest:]:
            yield Change(KIND, where, what, left, "none")
    for right in list(new.elements())[rest:] if rest < 0 else ():
        yield Change(KIND, where, what, "none", right)
    if not gone and not new and list(before) != list(after):
        at = next(at for at, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1])
        yield Change(KIND, where, f"order of {what}", before[at], after[at])
