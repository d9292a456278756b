"""Finds where a body, node or kernel stands, in the words of a person: graph, path of nodes, kernel, parameter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foundry.model import NONE, Graph, NodeType, Process
from foundry.model.restorable import graph_ends
from foundry.model.views import rows
from foundry.verify.report import Place


@dataclass(slots=True)
class Use:
    """The first node that uses a kernel, in a graph that can be restored if there is one, and how many do."""

    graph: int
    body: int
    node: int
    restorable: bool
    nodes: int = 0


class Places:
    """Places of one process."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @cached_property
    def ends(self) -> list[int]:
        """For each graph the end of its bodies."""
        return graph_ends(self.process)

    @cached_property
    def _parents(self) -> dict[int, tuple[int, int]]:
        """For each child body its parent's, and the node there."""
        owners = [np.flatnonzero(rows(group, NodeType.GRAPH)).tolist() for group in self.process.groups]
        children = iter(self.process.children.tolist())
        found = {}
        for body, group in enumerate(self.process.bodies.tolist()):
            for node in owners[group]:
                found[next(children)] = (body, node)
        return found

    def graph_of(self, body: int) -> int:
        """Give the graph that a body belongs to."""
        tops = [graph.body for graph in self.process.graphs]
        return int(np.searchsorted(tops, body, side="right")) - 1

    def path(self, body: int, node: int) -> tuple[int, ...]:
        """Give the path to a node."""
        path = [node]
        while body in self._parents:
            body, node = self._parents[body]
            path.append(node)
        return tuple(reversed(path))

    def graph(self, graph: Graph) -> Place:
        """Name a graph."""
        return Place(process=self.process.role, graph=(graph.set, graph.key))

    def node(self, graph: Graph, body: int, node: int, *, offset: int | None = None) -> Place:
        """Name a node, and the byte of it."""
        group = self.process.groups[int(self.process.bodies[body])]
        number = int(group.nodes["kernel"][node])
        kernel = self.process.kernels[number] if number != NONE else None
        parameter = None
        if kernel and offset is not None:
            within = (at for at, (start, size) in enumerate(kernel.parameters) if start <= offset < start + size)
            parameter = next(within, None)
        return Place(
            process=self.process.role,
            graph=(graph.set, graph.key),
            node=self.path(body, node),
            kernel=kernel.name if kernel else "",
            parameter=parameter,
            offset=offset,
        )

    def kernel_uses(self) -> dict[int, Use]:
        """Find who uses each kernel that a node names."""
        process = self.process
        firsts = []
        for group in process.groups:
            owned = np.flatnonzero(rows(group, NodeType.KERNEL))
            kernels, first, counts = np.unique(group.nodes["kernel"][owned], return_index=True, return_counts=True)
            firsts.append(list(zip(kernels.tolist(), owned[first].tolist(), counts.tolist(), strict=True)))
        found: dict[int, Use] = {}
        bodies = process.bodies.tolist()
        for index, (graph, end) in enumerate(zip(process.graphs, self.ends, strict=True)):
            for body in range(graph.body, end):
                for kernel, node, count in firsts[bodies[body]]:
                    use = found.get(kernel)
                    if use is None or (graph.restorable and not use.restorable):
                        found[kernel] = use = Use(index, body, node, graph.restorable, use.nodes if use else 0)
                    use.nodes += count
        found.pop(NONE, None)
        return found
