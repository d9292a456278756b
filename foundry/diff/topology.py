"""Topologies and graphs: which there are, what is said of each, which nodes came and went, edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from foundry.describe import names
from foundry.describe.values import edge as describe_edge
from foundry.describe.values import plain_edge
from foundry.diff.fingerprint import context_name
from foundry.diff.flat import Flat, Pairing, graph_name
from foundry.diff.kernels import kernel_name
from foundry.diff.metadata import metadata_changes
from foundry.diff.places import Places
from foundry.diff.report import Change, Kind, index_text, note, unequal
from foundry.model import NONE, Graph, Process
from foundry.model.tables import Table

MOST_NAMED = 3
Flats = tuple[Flat, Flat]


def graph_changes(where: str, flats: Flats, pairing: Pairing) -> Iterator[Change]:
    """Compare which graphs there are, and what is said of each."""
    before, after = flats[0].process, flats[1].process
    places = Places(before), Places(after)
    for side, process in ((0, before), (1, after)):
        for index in pairing.only[side]:
            graph = process.graphs[index]
            told = f"{len(process.groups[int(process.bodies[graph.body])].nodes)} nodes"
            yield Change(Kind.GRAPHS, f"{where}: graph {graph_name(graph)}", "graph",
                         *((told, "none") if side == 0 else ("none", told)))  # fmt: skip
    for index, partner in pairing.graphs:
        one, other = before.graphs[index], after.graphs[partner]
        place = f"{where}: graph {graph_name(one)}"
        yield from metadata_changes(place, (one.metadata, other.metadata), places, (index, partner))
        yield from unequal(Kind.GRAPHS, place, "device", one.device, other.device)
        reasons = one.reason_code or None, other.reason_code or None
        yield from unequal(Kind.GRAPHS, place, "reason against a restore", reasons[0], reasons[1])
        flags = [" ".join(names.flags(names.INSTANTIATE_FLAGS, graph.instantiate_flags)) for graph in (one, other)]
        if one.instantiate_flags != other.instantiate_flags:
            yield Change(Kind.GRAPHS, place, "instantiate flags", flags[0] or "none", flags[1] or "none")
        yield from unequal(Kind.GRAPHS, place, "context", _context(before, one), _context(after, other))
        yield from unequal(
            Kind.GRAPHS, place, "memory", _references(before, one) or None, _references(after, other) or None
        )
        for what in ("step", "captured", "dangling_words", "reason"):
            yield from note(place, what.replace("_", " "), getattr(one, what), getattr(other, what))
        yield from note(place, "rank of its first use", index_text(one.first_use), index_text(other.first_use))
    yield from _order(where, before, after)


def topology_changes(where: str, flats: Flats, pairing: Pairing) -> Iterator[Change]:
    """Compare topologies: nodes that came and went, and which graphs share one."""
    for place, bodies, left, begin in pairing.reshaped:
        sides = [_nodes(flat, body, begin, count) for flat, body, count in zip(flats, bodies, left, strict=True)]
        yield Change(Kind.TOPOLOGIES, place, f"nodes from {begin} on", sides[0], sides[1], count=max(left))
    yield from _sharing(where, flats, pairing)
    yield from note(where, "number of topologies", *(len(flat.process.groups) for flat in flats))


def edge_changes(flats: Flats, pairing: Pairing) -> Iterator[Change]:
    """Compare the edges of bodies with as many nodes. Bodies of the same two topologies are told once."""
    seen: dict[tuple[int, int], int] = {}
    first: dict[tuple[int, int], str] = {}
    reshaped = {bodies for _, bodies, _, _ in pairing.reshaped}
    for place, one, other in pairing.bodies:
        if (one, other) not in reshaped:
            groups = int(flats[0].process.bodies[one]), int(flats[1].process.bodies[other])
            seen[groups] = seen.get(groups, 0) + 1
            first.setdefault(groups, place)
    for (left, right), bodies in seen.items():
        tables = flats[0].process.groups[left].edges, flats[1].process.groups[right].edges
        place = first[left, right] + (f" and {bodies - 1} more with its topology" if bodies > 1 else "")
        if len(tables[0]) == len(tables[1]) and (tables[0] == tables[1]).all():
            lists = [flat.process.groups[group].dependencies for flat, group in zip(flats, (left, right), strict=True)]
            for node in sorted(node for node in lists[0] if lists[0][node] != lists[1][node]):
                orders = [", ".join(map(str, side[node])) for side in lists]
                yield from note(place, f"order of the dependencies of node {node}", *orders)
            continue
        sides = [_joined(table) for table in tables]
        for pair in sorted({*sides[0], *sides[1]}):
            told = [side.get(pair, "none") for side in sides]
            if told[0] != told[1]:
                yield Change(Kind.EDGES, place, f"edge {pair[0]} -> {pair[1]}", told[0], told[1], count=bodies)


def _joined(edges: Table) -> dict[tuple[int, int], str]:
    """Describe what joins each two nodes."""
    found: dict[tuple[int, int], str] = {}
    for start, end, data in edges.tolist():
        item = describe_edge(start, end, data)
        told = "plain" if plain_edge(item) else f"{item['type']}, data {item['data']}"
        found[start, end] = f"{found[start, end]}; {told}" if (start, end) in found else told
    return found


def _nodes(flat: Flat, body: int, begin: int, count: int) -> str:
    first = int(flat.first[body]) + begin
    total = int(flat.first[body + 1] - flat.first[body])
    told = []
    for node in flat.nodes[first : first + min(count, MOST_NAMED)]:
        if node["kernel"] != NONE:
            told.append(kernel_name(flat.process.kernels[int(node["kernel"])].name))
        else:
            told.append(names.node_type(int(node["type"])))
    more = f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    return f"{', '.join(told) or 'nothing'}{more} (of {total} nodes)"


def _sharing(where: str, flats: Flats, pairing: Pairing) -> Iterator[Change]:
    """Tell graphs that share their topology with others than before."""
    leaders: list[dict[int, int]] = [{}, {}]
    for index, partner in pairing.graphs:
        found = []
        for side, graph in ((0, index), (1, partner)):
            process = flats[side].process
            group = int(process.bodies[process.graphs[graph].body])
            found.append(leaders[side].setdefault(group, index))
        if found[0] != found[1]:
            graphs = flats[0].process.graphs
            sides = ["no graph before it" if leader == index else graph_name(graphs[leader]) for leader in found]
            yield Change(
                Kind.TOPOLOGIES,
                f"{where}: graph {graph_name(graphs[index])}",
                "shares a topology with",
                sides[0],
                sides[1],
            )


def _order(where: str, before: Process, after: Process) -> Iterator[Change]:
    sides = [[graph_name(graph) for graph in process.graphs] for process in (before, after)]
    both = set(sides[0]) & set(sides[1])
    common = [[name for name in side if name in both] for side in sides]
    if common[0] != common[1]:
        at = next(at for at, (one, other) in enumerate(zip(*common, strict=True)) if one != other)
        yield Change(Kind.GRAPHS, where, f"graph {at} in the order of making", common[0][at], common[1][at])


def _context(process: Process, graph: Graph) -> str:
    if graph.context >= len(process.contexts):
        return "none"
    context = process.contexts[graph.context]
    return context_name(context.device, context.primary, context.ordinal)


def _references(process: Process, graph: Graph) -> str:
    """Name the allocations by what finds them in a program: they may lie elsewhere."""
    table = process.allocations[np.array(graph.references, np.int64)]
    columns = (table[name].tolist() for name in ("device", "arena", "ordinal", "size"))
    return ", ".join(
        f"{names.name(names.ARENAS, arena)} {ordinal} of device {device} ({size:,} bytes)"
        for device, arena, ordinal, size in sorted(zip(*columns, strict=True))
    )
