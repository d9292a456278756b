"""The memory of a process as a document: arenas, allocations, and what graphs refer to."""

from __future__ import annotations

import numpy as np

from foundry.describe import names
from foundry.describe.documents import Allocation, ArenaUse, Memory, RangeUse
from foundry.model import NONE, Arena, Device, Process


def memory(process: Process) -> Memory:
    """Describe the memory of a process."""
    uses = reference_counts(process)
    return Memory(
        process=process.role,
        arenas=[_arena(process, device, arena, uses) for device in process.devices for arena in Arena],
        allocations=_allocations(process, uses),
        ranges=[
            RangeUse(
                index=index,
                kind=names.name(names.RANGES, item.kind),
                name=item.name,
                address=names.address(item.address) if item.address else None,
                size=item.size,
                born=item.born,
                died=None if item.died == NONE else item.died,
            )
            for index, item in enumerate(process.ranges)
        ],
        contents=[
            {"address": names.address(item.address), "size": item.size, "blob": item.blob} for item in process.contents
        ],
    )


def reference_counts(process: Process) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Count the graphs that refer to each allocation."""
    counts = np.zeros(len(process.allocations), np.int64)
    for graph in process.graphs:
        if graph.references:
            counts[list(graph.references)] += 1
    return counts


def _arena(
    process: Process, device: Device, arena: Arena, uses: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> ArenaUse:
    table = process.allocations
    mine = (table["device"] == device.ordinal) & (table["arena"] == arena)
    live = mine & (table["died"] == NONE)
    used = mine & (uses > 0)
    base = device.base + arena * device.arena_size
    ends = table["address"][mine] + np.maximum(table["taken"][mine], table["size"][mine])
    return ArenaUse(
        device=device.ordinal,
        arena=names.ARENAS[arena],
        address=names.address(base),
        capacity=device.arena_size,
        allocations=int(mine.sum()),
        live=int(live.sum()),
        bytes=int(table["size"][live].sum()),
        all_bytes=int(table["size"][mine].sum()),
        end=int(ends.max()) - base if len(ends) else 0,
        graph_allocations=int(used.sum()),
        graph_bytes=int(table["size"][used].sum()),
    )


def _allocations(process: Process, uses: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Allocation]:
    bases = {device.ordinal: (device.base, device.arena_size) for device in process.devices}
    found = []
    for index, (row, graphs) in enumerate(zip(process.allocations.tolist(), uses.tolist(), strict=True)):
        address, size, taken, ordinal, device, born, died, _, _, arena, origin = row
        base, length = bases[device]
        found.append(
            Allocation(
                index=index,
                device=device,
                arena=names.name(names.ARENAS, arena),
                ordinal=ordinal,
                address=names.address(address),
                offset=address - base - arena * length,
                size=size,
                taken=taken,
                origin=names.name(names.ORIGINS, origin),
                born=born,
                died=None if died == NONE else died,
                graphs=graphs,
            )
        )
    return found
