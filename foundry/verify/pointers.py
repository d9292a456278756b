"""Checks that every pointer of a graph lies in memory that the archive knows, and that a restore can honour it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from foundry.findings import (
    VERIFY_DANGLING_COUNT,
    VERIFY_POINTER,
    VERIFY_REFERENCES,
    VERIFY_SPAN,
    Severity,
)
from foundry.model import Arena, Graph, NodeType, Process
from foundry.model.pointers import Target, find_pointers
from foundry.model.tables import COPY_SIDES, COPY_SIZE, Table
from foundry.model.views import rows
from foundry.verify.places import Places
from foundry.verify.report import Problem


def check_pointers(
    process: Process, places: Places, table: Table, sure: npt.NDArray[np.bool_] | None = None
) -> Iterator[Problem]:
    """Check the pointers of every graph; `table` is what `find_pointers` gives.

    `sure` tells which of them are read as pointers, all without it. Of the others a graph may say that it needs them,
    or not.
    """
    sure = np.ones(len(table), np.bool_) if sure is None else sure
    bounds = np.searchsorted(table["graph"], np.arange(len(process.graphs) + 1))
    for index, graph in enumerate(process.graphs):
        part, read = table[bounds[index] : bounds[index + 1]], sure[bounds[index] : bounds[index + 1]]
        if graph.restorable:
            yield from _honoured(process, places, graph, part[read])
        yield from _references(process, places, graph, part, read)
    yield from _spans(process, places, table)


def pointers_of(process: Process) -> Table:
    """List the pointers of all graphs, as far as the ranges' addresses were kept."""
    return find_pointers(process, process.ranges)


def _honoured(process: Process, places: Places, graph: Graph, part: Table) -> Iterator[Problem]:
    """Find pointers that a restore cannot honour."""
    kernel, kind = part["type"] == NodeType.KERNEL, part["kind"]
    scratch = (kind == Target.ALLOCATION) & (part["arena"] == Arena.SCRATCH)
    bad = scratch | (kind == Target.RANGE) | (kind == Target.UNKNOWN) | ((kind == Target.DANGLING) & ~kernel)
    found = np.flatnonzero(bad)
    if len(found):
        row = part[found[0]]
        more = f", and {len(found) - 1} more of its words" if len(found) > 1 else ""
        text = f"{int(row['word']):#x} lies in {_target(process, row)}, which a restore does not bring back{more}"
        yield _problem(VERIFY_POINTER, Severity.ERROR, text, places, graph, row)


def _references(
    process: Process, places: Places, graph: Graph, part: Table, read: npt.NDArray[np.bool_]
) -> Iterator[Problem]:
    """Compare what a graph says that it needs with what its nodes point to."""
    inside = (part["kind"] == Target.ALLOCATION) & (part["arena"] != Arena.SCRATCH)
    held, listed = part[inside], np.array(graph.references, np.int64)
    missing = np.flatnonzero(~np.isin(held["target"], listed) & read[inside])
    if len(missing):
        row = held[missing[0]]
        text = f"{int(row['word']):#x} lies in {_target(process, row)}, which the graph does not list as needed"
        yield _problem(VERIFY_REFERENCES, Severity.ERROR, text, places, graph, row)
    extra = listed[~np.isin(listed, held["target"])]
    if len(extra):
        text = f"it lists allocation {int(extra[0])} as needed, and no node of it points there"
        yield Problem(VERIFY_REFERENCES, Severity.ERROR, text, places.graph(graph))
    lost = (part["kind"] == Target.DANGLING) & (part["type"] == NodeType.KERNEL)
    dangling = part[lost & read]
    if len(dangling) and not graph.dangling_words:
        row = dangling[0]
        more = f", and {len(dangling) - 1} more of its words" if len(dangling) > 1 else ""
        text = f"{int(row['word']):#x} lies in {_target(process, row)}{more}; it says that no word does"
        yield _problem(VERIFY_DANGLING_COUNT, Severity.ERROR, text, places, graph, row)
    elif not len(dangling) <= graph.dangling_words <= int(lost.sum()):
        text = f"it says that {graph.dangling_words} of its words point to no allocation, and {len(dangling)} do"
        yield Problem(VERIFY_DANGLING_COUNT, Severity.ERROR, text, places.graph(graph))


def _spans(process: Process, places: Places, table: Table) -> Iterator[Problem]:
    """Find memsets and copies that begin in an allocation and pass its end."""
    for kind, ends in ((NodeType.MEMSET, _memset_ends(process)), (NodeType.MEMCPY, _copy_ends(process))):
        part = table[(table["type"] == kind) & (table["kind"] == Target.ALLOCATION)]
        if not len(part):
            continue
        numbers = _row_numbers(process, kind)
        row = np.array([numbers[int(body), int(node)] for body, node in zip(part["body"], part["node"], strict=True)])
        side = (part["offset"] > COPY_SIDES["source"] + 16).astype(np.int64)
        taken = process.allocations["taken"][part["target"]]
        past = ends[row, side] > (taken - part["delta"]).astype(np.float64)
        for at in np.flatnonzero(past)[:1]:
            graph = process.graphs[int(part["graph"][at])]
            more = f" ({int(past.sum())} such nodes)" if past.sum() > 1 else ""
            what = "a memset" if kind == NodeType.MEMSET else "a copy"
            text = f"{what} of {ends[row[at], side[at]]:.0f} bytes passes the end of {_target(process, part[at])}{more}"
            yield _problem(VERIFY_SPAN, Severity.WARN, text, places, graph, part[at])


def _row_numbers(process: Process, kind: NodeType) -> dict[tuple[int, int], int]:
    owners = [np.flatnonzero(rows(group, kind)).tolist() for group in process.groups]
    places = [(body, node) for body, group in enumerate(process.bodies.tolist()) for node in owners[group]]
    return {place: row for row, place in enumerate(places)}


def _memset_ends(process: Process) -> npt.NDArray[np.float64]:
    """For each memset the bytes from its start to its end, for both sides of the comparison."""
    table = process.memsets
    width = table["width"].astype(np.float64) * table["element_size"]
    ends = width + np.maximum(table["height"].astype(np.float64) - 1, 0) * table["pitch"]
    return np.stack([ends, ends], axis=1)


def _copy_ends(process: Process) -> npt.NDArray[np.float64]:
    """For each copy the bytes from its base to its end, on the side of the source and on that of the destination."""
    words = process.copies.reshape(-1, COPY_SIZE).view("<u8").astype(np.float64)
    width, height, depth = words[:, 22], np.maximum(words[:, 23], 1), np.maximum(words[:, 24], 1)
    sides = []
    for first in (0, 11):
        x, y, z, pitch, rows_of_slice = (words[:, first + at] for at in (0, 1, 2, 9, 10))
        sides.append(((z + depth - 1) * rows_of_slice + y + height - 1) * pitch + x + width)
    return np.stack(sides, axis=1)


def _target(process: Process, row: np.void) -> str:
    kind, target = int(row["kind"]), int(row["target"])
    if kind == Target.ALLOCATION:
        allocation = process.allocations[target]
        arena = Arena(int(row["arena"])).name.lower()
        return f"allocation {target} ({int(allocation['size'])} bytes of the {arena} arena)"
    if kind == Target.DANGLING:
        return f"the {Arena(int(row['arena'])).name.lower()} arena, in no allocation that stood then"
    if kind == Target.RANGE:
        item = process.ranges[target]
        return f"range {target} of {item.size} bytes" + (f" (`{item.name}`)" if item.name else "")
    return "no memory that is known"


def _problem(code: str, severity: Severity, text: str, places: Places, graph: Graph, row: np.void) -> Problem:
    offset = int(row["offset"])
    return Problem(code, severity, text, places.node(graph, int(row["body"]), int(row["node"]), offset=offset))
