"""Which graphs a restore can bring back, which allocations they need, and what stands against the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from foundry.findings import (
    DANGLING_POINTER,
    DANGLING_WORD,
    FOREIGN_MEMORY,
    SCRATCH_MEMORY,
    Finding,
    Severity,
)
from foundry.model import HOST_RANGES, NONE, Arena, Graph, NodeType, Process, Range, RangeKind
from foundry.model.pointers import Target, find_pointers
from foundry.model.reads import Reads
from foundry.model.restorable import Problem
from foundry.model.tables import Table
from foundry.pack import driver_events

_RANGE_NAMES: dict[int, str] = {
    RangeKind.PINNED: "pinned host memory",
    RangeKind.REGISTERED: "registered host memory",
    RangeKind.MANAGED: "managed memory",
    RangeKind.MAPPED: "memory that the program mapped itself",
    RangeKind.POOL: "memory of the program's own pool",
    RangeKind.PEER: "memory of another process",
    RangeKind.GLOBAL: "a module's global",
    RangeKind.OUTSIDE: "device memory outside the reserved range",
}


def audit(
    process: Process,
    ranges: Sequence[Range],
    findings: list[Finding],
    reads: Reads | None = None,
    doubts: Mapping[int, Problem] | None = None,
) -> Process:
    """Give the process with its graphs' references, and the reason where a pointer stands against a restore.

    `ranges` are those of the process with all their addresses, `reads` tells what launches read: what they do not is no
    pointer. `doubts` says of allocations, by their index, what stands against graphs that point to them. A graph that
    already has a reason keeps it. Of the addresses, the process keeps those that graphs point to, if they are not host
    pointers: the driver chooses them, so that they differ between runs of one program.
    """
    pointers = find_pointers(process, ranges, reads)
    bounds = np.searchsorted(pointers["graph"], np.arange(len(process.graphs) + 1))
    pointed_to = tuple(
        _with_pointers(process, graph, pointers[bounds[index] : bounds[index + 1]], ranges)
        for index, graph in enumerate(process.graphs)
    )
    judged = tuple(_doubted(graph, doubts) for graph in pointed_to) if doubts else pointed_to
    process = driver_events.judge(replace(process, graphs=judged))
    for graph in process.graphs:
        where = f"{process.role}, graph {graph.name}"
        if (told := of_dangling_words(process.role, graph)) is not None:
            findings.append(told)
        if not graph.restorable:
            findings.append(Finding(graph.reason_code, Severity.WARN, f"not restorable: {graph.reason}", where))
    pointed = set(pointers["target"][pointers["kind"] == Target.RANGE].tolist())
    kept = tuple(
        item if index in pointed and item.kind not in HOST_RANGES else replace(item, address=0)
        for index, item in enumerate(process.ranges)
    )
    return replace(process, ranges=kept)


def of_dangling_words(role: str, graph: Graph) -> Finding | None:
    """Tell of the words of a graph that lie in an arena and in no allocation, if it has any."""
    if not graph.dangling_words:
        return None
    text = f"{graph.dangling_words} parameter words lie in an arena, but in no allocation that stood"
    return Finding(DANGLING_WORD, Severity.NOTE, text, f"{role}, graph {graph.name}")


def with_targets(graph: Graph, part: Table) -> Graph:
    """Give the graph with what its pointers lead to: the allocations, and how many words lead to none."""
    dangling = (part["kind"] == Target.DANGLING) & (part["type"] == NodeType.KERNEL)
    held = part["target"][(part["kind"] == Target.ALLOCATION) & (part["arena"] != Arena.SCRATCH)]
    return replace(graph, references=tuple(np.unique(held).tolist()), dangling_words=int(dangling.sum()))


def _doubted(graph: Graph, doubts: Mapping[int, Problem]) -> Graph:
    found = [doubts[number] for number in graph.references if number in doubts]
    if not found or not graph.restorable:
        return graph
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return replace(graph, reason_code=found[0].code, reason=f"points to {found[0].text}{more}")


def _with_pointers(process: Process, graph: Graph, part: Table, ranges: Sequence[Range]) -> Graph:
    kernel = part["type"] == NodeType.KERNEL
    dangling = part["kind"] == Target.DANGLING
    scratch = (part["kind"] == Target.ALLOCATION) & (part["arena"] == Arena.SCRATCH)
    bad = scratch | (part["kind"] == Target.RANGE) | (part["kind"] == Target.UNKNOWN) | (dangling & ~kernel)
    graph = with_targets(graph, part)
    first = np.flatnonzero(bad)
    if len(first) and graph.restorable:
        code, what = _reason(process, part, int(first[0]), ranges)
        place = _place(process, graph, part, int(first[0]))
        more = f" (and {len(first) - 1} more)" if len(first) > 1 else ""
        return replace(graph, reason_code=code, reason=f"{place} points to {what}{more}")
    return graph


def _reason(process: Process, part: Table, row: int, ranges: Sequence[Range]) -> tuple[str, str]:
    kind = int(part["kind"][row])
    if kind == Target.ALLOCATION:
        target = process.allocations[int(part["target"][row])]
        return SCRATCH_MEMORY, f"scratch memory (allocation {int(target['ordinal'])} of {int(target['size'])} bytes)"
    if kind == Target.DANGLING:
        return DANGLING_POINTER, "memory that was freed, or never allocated"
    if kind == Target.RANGE:
        item = ranges[int(part["target"][row])]
        name = f" `{item.name}`" if item.name else ""
        return FOREIGN_MEMORY, _RANGE_NAMES.get(item.kind, "memory of an unknown kind") + name
    return FOREIGN_MEMORY, "memory that was not seen to be allocated"


def _place(process: Process, graph: Graph, part: Table, row: int) -> str:
    node, body, offset = int(part["node"][row]), int(part["body"][row]), int(part["offset"][row])
    inner = f" of child graph {body - graph.body}" if body != graph.body else ""
    kind = int(part["type"][row])
    if kind == NodeType.KERNEL:
        number = int(process.groups[int(process.bodies[body])].nodes["kernel"][node])
        name = process.kernels[number].name if number != NONE else "unknown kernel"
        return f"node {node}{inner}, `{name}`, parameter byte {offset}"
    what = "memset" if kind == NodeType.MEMSET else "source of copy" if offset < 100 else "destination of copy"
    return f"node {node}{inner}, {what},"
