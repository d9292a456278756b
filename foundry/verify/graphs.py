"""Checks that graphs make sense by themselves: no cycles, nodes that can run, members that expand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from foundry.findings import VERIFY_CYCLE, VERIFY_MEMBER, VERIFY_NODE_VALUES, Severity
from foundry.model import Group, NodeType, Process
from foundry.model.views import GraphView, rows
from foundry.verify.places import Places
from foundry.verify.report import Problem

LARGEST_BLOCK = 1024
"""Threads of a block, on every GPU there is."""
ELEMENT_SIZES = (1, 2, 4)


def check_graphs(process: Process, places: Places) -> Iterator[Problem]:
    """Check all groups and bodies of a process."""
    yield from _cycles(process, places)
    yield from _launches(process, places)
    yield from _memsets(process, places)
    yield from _members(process, places)


def cycle_of(group: Group) -> list[int]:
    """Find nodes that lead back to themselves, in their order; empty if there are none."""
    edges = group.edges
    if bool((edges["start"] < edges["end"]).all()):
        return []
    following: dict[int, list[int]] = {}
    waiting = np.bincount(edges["end"], minlength=len(group.nodes)).tolist()
    for start, end in zip(edges["start"].tolist(), edges["end"].tolist(), strict=True):
        following.setdefault(start, []).append(end)
    ready = [node for node, count in enumerate(waiting) if not count]
    while ready:
        for node in following.get(ready.pop(), ()):
            waiting[node] -= 1
            if not waiting[node]:
                ready.append(node)
    left = {node for node, count in enumerate(waiting) if count}
    return _walk(left, following) if left else []


def _walk(left: set[int], following: dict[int, list[int]]) -> list[int]:
    """Go backwards among nodes that wait for one another until one comes again."""
    before = {end: start for start in left for end in following.get(start, ()) if end in left}
    node, seen = min(left), dict[int, int]()
    while node not in seen:
        seen[node] = len(seen)
        node = before[node]
    cycle = list(reversed(list(seen)[seen[node] :]))
    lowest = cycle.index(min(cycle))
    return cycle[lowest:] + cycle[:lowest]


def _cycles(process: Process, places: Places) -> Iterator[Problem]:
    bodies = process.bodies.tolist()
    for number, group in enumerate(process.groups):
        cycle = cycle_of(group)
        if not cycle:
            continue
        shown = " > ".join(map(str, [*cycle[:6], "...", cycle[0]] if len(cycle) > 6 else [*cycle, cycle[0]]))
        text = f"its nodes wait for one another: {shown} (group {number}, {bodies.count(number)} bodies)"
        if number not in bodies:
            yield Problem(VERIFY_CYCLE, Severity.ERROR, text)
            continue
        body = bodies.index(number)
        graph = process.graphs[places.graph_of(body)]
        yield Problem(VERIFY_CYCLE, Severity.ERROR, text, places.node(graph, body, cycle[0]))


def _launches(process: Process, places: Places) -> Iterator[Problem]:
    table = process.launches
    threads = table["block"].astype(np.float64).prod(axis=1)
    bad = (table["grid"] == 0).any(axis=1) | (table["block"] == 0).any(axis=1) | (threads > LARGEST_BLOCK)
    for row in np.flatnonzero(bad)[:1].tolist():
        grid, block = (" x ".join(map(str, table[name][row].tolist())) for name in ("grid", "block"))
        text = f"no GPU runs a grid of {grid} blocks of {block} threads{_more(int(bad.sum()))}"
        yield _of_row(process, places, NodeType.KERNEL, row, text)


def _memsets(process: Process, places: Places) -> Iterator[Problem]:
    table = process.memsets
    bad = ~np.isin(table["element_size"], ELEMENT_SIZES) | (table["width"] == 0) | (table["height"] == 0)
    for row in np.flatnonzero(bad)[:1].tolist():
        shape = f"{int(table['width'][row])} x {int(table['height'][row])} elements"
        size = int(table["element_size"][row])
        text = f"no driver takes a memset of {shape} of {size} bytes{_more(int(bad.sum()))}"
        yield _of_row(process, places, NodeType.MEMSET, row, text)


def _members(process: Process, places: Places) -> Iterator[Problem]:
    """Expand every body, node by node."""
    view = GraphView(process)
    for graph, end in zip(process.graphs, places.ends, strict=True):
        for body in range(graph.body, end):
            try:
                count = sum(1 for _ in view.nodes(body))
            except (IndexError, ValueError, KeyError) as error:
                text = f"its members cannot be expanded: {error}"
                yield Problem(VERIFY_MEMBER, Severity.ERROR, text, places.graph(graph))
                break
            if count != len(view.group(body).nodes):
                text = f"body {body - graph.body} of it expands to {count} nodes of {len(view.group(body).nodes)}"
                yield Problem(VERIFY_MEMBER, Severity.ERROR, text, places.graph(graph))
                break


def _more(count: int) -> str:
    return f", like {count - 1} more" if count > 1 else ""


def _of_row(process: Process, places: Places, kind: NodeType, row: int, text: str) -> Problem:
    """Name the node that owns a row of the launches or memsets."""
    owners = [np.flatnonzero(rows(group, kind)) for group in process.groups]
    for body, number in enumerate(process.bodies.tolist()):
        if row < len(owners[number]):
            graph = process.graphs[places.graph_of(body)]
            place = places.node(graph, body, int(owners[number][row]))
            return Problem(VERIFY_NODE_VALUES, Severity.ERROR, text, place)
        row -= len(owners[number])
    raise AssertionError("a row that no body owns")
