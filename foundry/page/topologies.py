"""The topologies of a process: graphs of one topology stand together, and topologies of one shape share a drawing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from foundry.describe import svg
from foundry.describe.graphs import Graphs
from foundry.model import Group, Process
from foundry.page.budget import Budget
from foundry.page.chain import is_chain, ribbon, ribbon_text
from foundry.page.markup import Markup, join, tag, trusted
from foundry.page.nodes import Nodes
from foundry.page.overview import graph_label
from foundry.page.quantities import count

MOST_SHAPES = 24
MOST_RIBBONS = 64
MOST_MEMBERS = 64
MOST_PARTS = 20_000
"""Nodes and edges of a graph that is drawn."""


@dataclass(slots=True)
class Shape:
    """Groups whose nodes have the same types in the same order and the same edges, whatever kernels they run."""

    groups: list[int]
    graphs: int


def shapes(process: Process) -> list[Shape]:
    """Put the groups that are the top of a graph together by shape, those with most graphs first."""
    members = members_of(process)
    found: dict[bytes, Shape] = {}
    for index in sorted(members):
        group = process.groups[index]
        key = hashlib.sha256(
            group.nodes["type"].tobytes() + b"|" + group.nodes["child"].tobytes() + b"|" + group.edges.tobytes()
        ).digest()
        shape = found.setdefault(key, Shape([], 0))
        shape.groups.append(index)
        shape.graphs += len(members[index])
    return sorted(found.values(), key=lambda shape: (-shape.graphs, shape.groups[0]))


def members_of(process: Process) -> dict[int, list[int]]:
    """List the graphs of each group that is the top of one."""
    members: dict[int, list[int]] = {}
    for number, graph in enumerate(process.graphs):
        members.setdefault(int(process.bodies[graph.body]), []).append(number)
    return members


def topologies(process: Process, nodes: Nodes, budget: Budget) -> Markup:
    """Draw the shapes, and under each the topologies with their members."""
    found, members = shapes(process), members_of(process)
    if not found:
        return tag("p", "There is no graph.", class_="note")
    graphs_of = Graphs(process)
    parts = [
        _shape(process, nodes, budget, graphs_of, shape, members, number)
        for number, shape in enumerate(found[:MOST_SHAPES], 1)
    ]
    left = found[MOST_SHAPES:]
    if left:
        graphs = count(sum(shape.graphs for shape in left), "graph")
        parts.append(tag("p", f"{count(len(left), 'further shape')} with {graphs} not drawn.", class_="note"))
    return join(parts)


def _shape(
    process: Process,
    nodes: Nodes,
    budget: Budget,
    graphs: Graphs,
    shape: Shape,
    members: dict[int, list[int]],
    number: int,
) -> Markup:
    first = process.groups[shape.groups[0]]
    facts = [
        count(shape.graphs, "graph"),
        count(len(shape.groups), "topology", "topologies"),
        count(len(first.nodes), "node"),
        count(len(first.edges), "edge"),
    ]
    return tag(
        "section",
        tag("h4", tag("span", f"Shape {number}: {_what(first)}"), tag("small", " · ".join(facts))),
        budget.fit(ribbon(nodes.of_group[shape.groups[0]], nodes), "The picture of the nodes"),
        tag("p", ribbon_text(nodes.of_group[shape.groups[0]]), class_="scale"),
        _drawing(budget, graphs, members[shape.groups[0]][0], first),
        _members(process, nodes, budget, shape, members),
        class_="shape",
    )


def _what(group: Group) -> str:
    if len(group.nodes) == 1:
        return "a single node"
    if is_chain(group):
        return "one chain"
    return "nodes without edges" if not len(group.edges) else "branches"


def _drawing(budget: Budget, graphs: Graphs, graph: int, group: Group) -> Markup | None:
    if len(group.nodes) + len(group.edges) > MOST_PARTS:
        return tag("p", "Too large to be drawn here; `foundry inspect --graph KEY --svg` draws it.", class_="note")
    text = trusted(svg.draw(graphs.document(graph, parameters=False)))
    box = tag("div", text, class_="drawing", tabindex=0, role="group", aria_label="Drawing of the graph")
    name = graph_label(graphs.process.graphs[graph])
    folded = tag("details", tag("summary", f"Drawing: {name}"), box, open=not is_chain(group))
    return budget.fit(folded, "The drawing")


def _members(process: Process, nodes: Nodes, budget: Budget, shape: Shape, members: dict[int, list[int]]) -> Markup:
    rows = []
    for at, group in enumerate(shape.groups[:MOST_RIBBONS]):
        rows.append(
            tag(
                "li",
                tag("p", _names(process, members[group]), class_="members"),
                budget.fit(ribbon(nodes.of_group[group], nodes), "The picture of the nodes") if at else None,
            )
        )
    left = len(shape.groups) - len(rows)
    if left:
        rows.append(tag("li", count(left, "more topology", "more topologies"), class_="note"))
    what = "topology, with its graphs" if len(shape.groups) == 1 else "topologies, with their graphs"
    return tag("details", tag("summary", f"{len(shape.groups):,} {what}"), tag("ul", rows, class_="groups"))


def _names(process: Process, graphs: list[int]) -> Markup:
    shown = [tag("span", graph_label(process.graphs[index]), class_="key") for index in graphs[:MOST_MEMBERS]]
    left = len(graphs) - len(shown)
    return join([join(name, " ") for name in shown], f"and {left:,} more" if left else None)
