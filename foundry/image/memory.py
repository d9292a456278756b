"""Devices, the log of the main arena, and the memory that graphs refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.image import layout
from foundry.image.strings import Strings
from foundry.model import NONE, Arena, Contents, Graph, Process
from foundry.model.tables import Table, distinct


def devices(process: Process, strings: Strings) -> Table:
    """Lay out the devices."""
    table = np.zeros(len(process.devices), layout.DEVICE)
    for row, device in zip(table, process.devices, strict=True):
        row["name"] = strings.add(device.name)
        for name in ("ordinal", "compute_major", "compute_minor", "multiprocessors", "flags", "total_memory"):
            row[name] = getattr(device, name)
        row["base"], row["arena_size"] = device.base, device.arena_size
    return table


@dataclass(frozen=True, slots=True)
class Log:
    """The history of the main arena. `needed` tells how much of a device's part must have come for an allocation."""

    table: Table
    needed: npt.NDArray[np.uint32]


def log(process: Process, strings: Strings) -> Log:
    """Lay out the history of the main arena up to the last commit, or the last graph if that came later.

    Without a commit all of it counts. Where one thread allocates, an allocation is the same one if it has the same
    place and size; where several do, all before it must have come in the same order.
    """
    end = max([process.committed, *(graph.step for graph in process.graphs if graph.restorable)])
    rows = np.flatnonzero(process.allocations["arena"] == Arena.MAIN)
    main = process.allocations[rows]
    freed = main[main["died"] != NONE]
    table = np.zeros(len(main) + len(freed), layout.LOG_ENTRY)
    births, deaths = table[: len(main)], table[len(main) :]
    births["size"], births["thread"] = main["size"], main["born_thread"]
    deaths["freed"], deaths["thread"] = 1, freed["died_thread"]
    for part, source in ((births, main), (deaths, freed)):
        part["address"], part["device"] = source["address"], source["device"]
    steps = np.concatenate([main["born"], freed["died"]])
    order = np.argsort(steps, kind="stable")
    order = order[steps[order] < end]
    table = table[order]
    table["where"] = [strings.add(text) for text in near(process, steps[order])]
    needed = np.zeros(len(process.allocations), np.uint32)
    for device in distinct(table["device"]):
        own = np.flatnonzero(table["device"] == device)
        several = np.flatnonzero(table["thread"][own] != table["thread"][own[0]])
        if len(several):
            late = own[several[0] :]
            births_of = order[late] < len(main)
            needed[rows[order[late[births_of]]]] = np.arange(several[0], len(own))[births_of] + 1
    return Log(table, needed)


def near(process: Process, steps: npt.NDArray[np.uint32]) -> list[str]:
    """Say for each step which phase it falls in, or which phase or graph came last before it."""
    marks = [
        (graph.step, " ".join(["after graph", *(f"`{name}`" for name in (graph.set, graph.key) if name)]))
        for graph in process.graphs
    ]
    for phase in process.phases:
        name = f"phase `{phase.name}`" if phase.name else "a phase"
        marks.append((phase.begin, f"in {name}"))
        if phase.end != NONE:
            marks.append((phase.end, f"after {name}"))
    marks.sort(key=lambda mark: mark[0])
    places = np.array([step for step, _ in marks], np.int64)
    texts = ["before the first graph", *(text for _, text in marks)]
    return [texts[at] for at in np.searchsorted(places, steps, side="right").tolist()]


@dataclass(frozen=True, slots=True)
class References:
    """The allocations that restorable graphs refer to. `index` gives the image's number of a model's allocation."""

    table: Table
    index: npt.NDArray[np.uint32]


def references(process: Process, graphs: Sequence[Graph], needed: npt.NDArray[np.uint32]) -> References:
    """Lay out the allocations of these graphs."""
    wanted = np.array(sorted({number for graph in graphs for number in graph.references}), np.int64)
    source = process.allocations[wanted]
    table = np.zeros(len(wanted), layout.ALLOCATION)
    for name in ("address", "size", "device", "arena"):
        table[name] = source[name]
    table["restored"] = source["arena"] == Arena.GRAPH
    table["log_entries"] = np.where(table["restored"], 0, needed[wanted])
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
    pieces: list[Mapping] = []
    for mapping in found:
        held = sorted(
            (item for item in process.contents if mapping.start <= item.address < mapping.end),
            key=lambda item: item.address,
        )
        pieces += _cut(mapping, held, blobs)
    return sorted(pieces, key=lambda mapping: mapping.start)


def _cut(whole: Mapping, contents: Sequence[Contents], blobs: Sequence[bytes]) -> list[Mapping]:
    """Cut a mapping into pieces of whole pages, so that what it held is joined only within pages that meet."""
    page = layout.MAPPING_ALIGNMENT
    pieces: list[Mapping] = []
    held: list[list[Contents]] = []
    at = whole.start
    for item in contents:
        start = item.address // page * page
        end = min(-(-(item.address + item.size) // page) * page, whole.end)
        if held and start < at:
            pieces[-1].end = at = max(at, end)
            held[-1].append(item)
            continue
        if start > at:
            pieces.append(Mapping(whole.device, at, start))
            held.append([])
        pieces.append(Mapping(whole.device, start, end))
        held.append([item])
        at = end
    if at < whole.end:
        pieces.append(Mapping(whole.device, at, whole.end))
        held.append([])
    for piece, inside in zip(pieces, held, strict=True):
        _fill(piece, inside, blobs)
    return pieces


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
