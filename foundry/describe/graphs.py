"""Graphs as documents: a row of a list, or all that is in one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from foundry.describe import demangle, names, values
from foundry.describe.documents import Body, Graph, GraphRow, KernelName, Node
from foundry.describe.parameters import decode
from foundry.describe.targets import Targets
from foundry.model import NONE, Process
from foundry.model import Graph as ModelGraph
from foundry.model.reads import Index, Reads
from foundry.model.restorable import graph_ends
from foundry.model.views import GraphView, NodeView


class Graphs:
    """The graphs of one process. `reads` tells what launches read, given by their rows; without it, that is all."""

    def __init__(self, process: Process, reads: Callable[[Index], Reads] | None = None) -> None:
        self.process = process
        self._reads_of = reads
        self._reads: Reads | None = None
        self._view = GraphView(process)
        self._ends = graph_ends(process)
        self._groups: list[int] = process.bodies.tolist()
        self._sizes: list[int] = process.allocations["size"].tolist()

    def rows(self) -> list[GraphRow]:
        """List the graphs in the order in which they were made."""
        return [self._row(index) for index in range(len(self.process.graphs))]

    def document(
        self,
        index: int,
        *,
        parameters: bool = True,
        wanted: Callable[[int, int], bool] = lambda body, node: True,
    ) -> Graph:
        """Describe a graph in full. `wanted` chooses nodes by body and index, edges always come."""
        graph = self.process.graphs[index]
        targets = Targets(self.process, graph.step)
        if parameters and self._reads_of is not None:
            self._reads = self._reads_of(self._view.kernel_rows(graph.body, self._ends[index]))
        bodies = [
            self._body(graph.body, body, targets, parameters, wanted) for body in range(graph.body, self._ends[index])
        ]
        for body in bodies:
            for node in body["nodes"]:
                if node["child"] is not None:
                    bodies[node["child"]]["parent_body"] = body["number"]
                    bodies[node["child"]]["parent_node"] = node["index"]
        return Graph(
            **self._row(index),
            metadata=graph.metadata,
            step=graph.step,
            captured=graph.captured,
            instantiate_flags=names.flags(names.INSTANTIATE_FLAGS, graph.instantiate_flags),
            context=context_of(self.process, graph.context),
            dangling_words=graph.dangling_words,
            allocations=list(graph.references),
            contents=bodies,
        )

    def body_at(self, index: int, path: Sequence[int]) -> int | None:
        """Give the number of the body that a way through child graphs leads to: the node to go into, and so on."""
        top = self.process.graphs[index].body
        body = top
        for step in path:
            child = next((node.child for node in self._view.nodes(body) if node.index == step), None)
            if child is None:
                return None
            body = child
        return body - top

    @cached_property
    def _members(self) -> dict[int, int]:
        members: dict[int, int] = {}
        for graph in self.process.graphs:
            group = self._groups[graph.body]
            members[group] = members.get(group, 0) + 1
        return members

    def _row(self, index: int) -> GraphRow:
        graph = self.process.graphs[index]
        bodies = self._groups[graph.body : self._ends[index]]
        groups = [self.process.groups[group] for group in bodies]
        return GraphRow(
            process=self.process.role,
            set=graph.set,
            key=graph.key,
            index=index,
            group=bodies[0],
            group_members=self._members[bodies[0]],
            nodes=sum(len(group.nodes) for group in groups),
            edges=sum(len(group.edges) for group in groups),
            bodies=len(bodies),
            device=graph.device,
            restorable=graph.restorable,
            restored=graph.restored,
            reason_code=graph.reason_code,
            reason=graph.reason,
            first_use=None if graph.first_use == NONE else graph.first_use,
            references=len(graph.references),
            referenced_bytes=sum(self._sizes[row] for row in graph.references),
        )

    def _body(
        self, top: int, body: int, targets: Targets, parameters: bool, wanted: Callable[[int, int], bool]
    ) -> Body:
        group = self._view.group(body)
        edges = zip(
            group.edges["start"].tolist(), group.edges["end"].tolist(), group.edges["data"].tolist(), strict=True
        )
        kernels = group.nodes["kernel"].tolist()
        return Body(
            number=body - top,
            parent_body=None,
            parent_node=None,
            group=self._groups[body],
            nodes=[
                self._node(node, kernels[node.index], top, targets, parameters)
                for node in self._view.nodes(body)
                if wanted(body - top, node.index)
            ],
            edges=[values.edge(start, end, data) for start, end, data in edges],
        )

    def _read(self, row: int | None, size: int) -> bytes:
        """Give a byte for each byte of a launch's parameters: 0 if it is not read."""
        if self._reads is None or row is None:
            return b"\xff" * size
        words = -(-size // 8)
        offsets = np.arange(words) * 8
        return self._reads.at(np.full(words, row), offsets).tobytes()[:size]

    def _node(self, node: NodeView, kernel: int, top: int, targets: Targets, parameters: bool) -> Node:
        decoded = None
        if parameters and node.parameters is not None:
            read = self._read(node.row, len(node.parameters))
            decoded = decode(node.kernel.parameters if node.kernel else (), node.parameters, targets, read)
        return Node(
            index=node.index,
            type=names.node_type(node.type),
            reason=node.reason,
            kernel=kernel_name(kernel, node.kernel.name) if node.kernel is not None else None,
            grid=None if node.grid is None else list(node.grid),
            block=None if node.block is None else list(node.block),
            shared_bytes=node.shared_bytes,
            attributes=values.launch_attributes(node.attributes),
            parameters=decoded,
            memset=None if node.memset is None else values.memset(node.memset, targets),
            copy=None if node.copy is None else values.copy(node.copy, targets),
            event=None if node.event in (None, NONE) else node.event,
            child=None if node.child is None else node.child - top,
        )


def kernel_name(index: int, name: str) -> KernelName:
    """Name a kernel in three ways."""
    return KernelName(index=index, name=name, readable=demangle.readable(name), short=demangle.short(name))


def context_of(process: Process, number: int) -> str:
    """Name a context as people do."""
    if number >= len(process.contexts):
        return "none"
    context = process.contexts[number]
    return f"{'primary' if context.primary else f'created {context.ordinal}'} of device {context.device}"


def title(row: GraphRow | ModelGraph) -> str:
    """Write the name that a graph is found by: its set and key."""
    pair = (row["set"], row["key"]) if isinstance(row, dict) else (row.set, row.key)
    return f"{pair[0]}/{pair[1]}" if pair[0] else pair[1]


def matching(rows: Iterable[GraphRow], wanted: str) -> list[GraphRow]:
    """Find the graphs with that key, or that set and key."""
    listed = list(rows)
    whole = [row for row in listed if title(row) == wanted]
    return whole or [row for row in listed if row["key"] == wanted]


def near(rows: Iterable[GraphRow], wanted: str, most: int = 4) -> list[str]:
    """List the names most like one that is not there."""
    titles = {title(row): title(row) for row in rows}
    keys = {name.rpartition("/")[2]: name for name in titles}
    found = difflib.get_close_matches(wanted, titles, most, 0.4)
    found += [keys[key] for key in difflib.get_close_matches(wanted.rpartition("/")[2], keys, most, 0.4)]
    return list(dict.fromkeys(found))[:most]
