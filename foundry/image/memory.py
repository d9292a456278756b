"""Devices, the log of the main arena, and the memory that graphs refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.image import layout
from foundry.image.strings import Strings
from foundry.model import NONE, Arena, Contents, Graph, Process
from foundry.model.tables import Table


def devices(process: Process, strings: Strings) -> Table:
    """Lay out the devices."""
    table = np.zeros(len(process.devices), layout.DEVICE)
    for row, device in zip(table, process.devices, strict=True):
        row["name"] = strings.add(device.name)
        for name in ("ordinal", "compute_major", "compute_minor", "multiprocessors", "flags", "total_memory"):
            row[name] = getattr(device, name)
        row["base"], row["arena_size"] = device.base, device.arena_size
    return table


def log(process: Process) -> Table:
    """Lay out the history of the main arena up to the last commit, or the last graph if that came later.

    Without a commit all of it counts.
    """
    end = max([process.committed, *(graph.step for graph in process.graphs if graph.restorable)])
    main = process.allocations[process.allocations["arena"] == Arena.MAIN]
    freed = main[main["died"] != NONE]
    table = np.zeros(len(main) + len(freed), layout.LOG_ENTRY)
    births, deaths = table[: len(main)], table[len(main) :]
    births["size"], births["thread"] = main["size"], main["born_thread"]
    deaths["freed"], deaths["thread"] = 1, freed["died_thread"]
    for part, source in ((births, main), (deaths, freed)):
        part["address"], part["device"] = source["address"], source["device"]
    steps = np.concatenate([main["born"], freed["died"]])
    order = np.argsort(steps, kind="stable")
    return table[order[steps[order] < end]]


@dataclass(frozen=True, slots=True)
class References:
    """The allocations that restorable graphs refer to. `index` gives the image's number of a model's allocation."""

    table: Table
    index: npt.NDArray[np.uint32]


def references(process: Process, graphs: Sequence[Graph]) -> References:
    """Lay out the allocations of these graphs."""
    wanted = np.array(sorted({number for graph in graphs for number in graph.references}), np.int64)
    source = process.allocations[wanted]
    table = np.zeros(len(wanted), layout.ALLOCATION)
    for name in ("address", "size", "device", "arena"):
        table[name] = source[name]
    table["restored"] = source["arena"] == Arena.GRAPH
    index = np.full(len(process.allocations), NONE, np.uint32)
    index[wanted] = np.arange(len(wanted))
    return References(table, index)


@dataclass(slots=True)
class Mapping:
    """A stretch of the graph arena that the hook maps, and what it held."""

    device: int
    start: int
    end: int
    contents: bytes | None = None
    contents_offset: int = 0


def mappings(process: Process, graphs: Sequence[Graph], blobs: Sequence[bytes]) -> list[Mapping]:
    """List what the hook maps: whole pages that cover the graph-arena allocations of these graphs."""
    wanted = np.array(sorted({number for graph in graphs for number in graph.references}), np.int64)
    source = process.allocations[wanted]
    source = source[source["arena"] == Arena.GRAPH]
    page = layout.MAPPING_ALIGNMENT
    found: list[Mapping] = []
    for row in source[np.lexsort((source["address"], source["device"]))]:
        start = int(row["address"]) // page * page
        end = -(-(int(row["address"]) + max(int(row["taken"]), int(row["size"]))) // page) * page
        if found and found[-1].device == int(row["device"]) and start <= found[-1].end:
            found[-1].end = max(found[-1].end, end)
        else:
            found.append(Mapping(int(row["device"]), start, end))
    for mapping in found:
        _fill(mapping, [c for c in process.contents if mapping.start <= c.address < mapping.end], blobs)
    return sorted(found, key=lambda mapping: mapping.start)


def _fill(mapping: Mapping, contents: Sequence[Contents], blobs: Sequence[bytes]) -> None:
    """Join all contents of a mapping to one piece; between them the memory holds zeros anyway."""
    if not contents:
        return
    first = min(item.address for item in contents)
    last = min(max(item.address + item.size for item in contents), mapping.end)
    joined = bytearray(last - first)
    for item in sorted(contents, key=lambda item: item.address):
        at = item.address - first
        part = blobs[item.blob][: len(joined) - at]
        joined[at : at + len(part)] = part
    mapping.contents, mapping.contents_offset = bytes(joined), first - mapping.start
