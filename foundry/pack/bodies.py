"""Turns the raw handles of a graph's nodes into ids, as they stand when the graph is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from foundry.findings import CONTEXT_MIXED, EVENT_UNKNOWN, HOST_COPY, NODE_UNSUPPORTED
from foundry.model import NONE, NodeType
from foundry.model.pointers import ARRAY, HOST
from foundry.model.restorable import Problem
from foundry.model.tables import COPY_SIDES, COPY_SIZE, MEMSET, NODE, Table, Words, dependency_order, sorted_edges
from foundry.spool.bodies import Body, attribute_set


@dataclass(slots=True)
class ResolvedBody:
    """A body with ids for handles; `nodes["child"]` is filled in by the grouping."""

    nodes: Table
    edges: Table
    order: Words
    launches: bytes
    parameters: memoryview
    memsets: Table
    copies: bytes
    events: list[int]
    children: list[ResolvedBody]
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class Resolver:
    """What the handles of one graph mean: kernels by id on its device, events, contexts."""

    kernel: Callable[[int], int]
    event: Callable[[int], int]
    context: Callable[[int], int]
    graph_context: int
    attribute_ids: dict[bytes, int]
    attribute_sets: dict[tuple[tuple[int, bytes], ...], int]
    reasons: dict[str, int]

    def resolve(self, body: Body, path: tuple[int, ...] = ()) -> ResolvedBody:
        """Resolve a body and its children."""
        problems: list[Problem] = []
        nodes = np.zeros(len(body.nodes), NODE)
        for name in ("kernel", "attributes", "context", "child", "reason"):
            nodes[name] = NONE
        nodes["type"] = body.nodes["type"]
        nodes["parameter_size"] = body.nodes["size"]
        for index, reason in enumerate(body.reasons if any(body.reasons) else ()):
            if reason:
                nodes["reason"][index] = self.reasons.setdefault(reason, len(self.reasons))
                problems.append(Problem(NODE_UNSUPPORTED, reason, (*path, index)))
        plain = nodes["reason"] == NONE
        at = np.flatnonzero(plain & (nodes["type"] == NodeType.KERNEL))
        handles = body.nodes["kernel"][at].tolist()
        kernels = {handle: self.kernel(handle) for handle in dict.fromkeys(handles)}
        nodes["kernel"][at] = [kernels[handle] for handle in handles]
        attributes = {raw: self._attributes(raw) for raw in dict.fromkeys(body.attributes)}
        nodes["attributes"][at] = [attributes[raw] for raw in body.attributes]
        nodes["context"] = self._contexts(body, path, problems)
        event_nodes = np.flatnonzero(plain & np.isin(nodes["type"], (NodeType.EVENT_RECORD, NodeType.WAIT_EVENT)))
        numbers = [self.event(handle) for handle in body.events]
        for index, number in zip(event_nodes.tolist(), numbers, strict=True):
            if number == NONE:
                problems.append(Problem(EVENT_UNKNOWN, "names an event that was not seen", (*path, index)))
        copy_nodes = np.flatnonzero(plain & (nodes["type"] == NodeType.MEMCPY))
        copies = _copies(body, copy_nodes, path, problems)
        child_nodes = np.flatnonzero(plain & (nodes["type"] == NodeType.GRAPH)).tolist()
        children = [
            self.resolve(child, (*path, index)) for child, index in zip(body.children, child_nodes, strict=True)
        ]
        for child in children:
            problems.extend(child.problems)
        edges = sorted_edges(body.edges)
        return ResolvedBody(
            nodes,
            edges,
            dependency_order(body.edges, edges),
            body.launches,
            body.parameters,
            _memsets(body),
            copies,
            numbers,
            children,
            problems,
        )

    def _attributes(self, raw: bytes) -> int:
        number = self.attribute_ids.get(raw)
        if number is None:
            decoded = attribute_set(raw)
            number = self.attribute_sets.setdefault(decoded, len(self.attribute_sets))
            self.attribute_ids[raw] = number
        return number

    def _contexts(self, body: Body, path: tuple[int, ...], problems: list[Problem]) -> Words:
        """Give the context of each node that names another one than its graph."""
        handles = body.nodes["context"]
        result = np.full(len(handles), NONE, np.uint32)
        for handle in np.unique(handles[handles != 0]).tolist():
            number = self.context(handle)
            if number != self.graph_context:
                result[handles == handle] = number
        for index in np.flatnonzero(result != NONE).tolist():
            problems.append(Problem(CONTEXT_MIXED, "runs in another context than its graph", (*path, index)))
        return result


def _memsets(body: Body) -> Table:
    table = np.zeros(len(body.memsets), MEMSET)
    for index, name in enumerate(("destination", "pitch", "value", "element_size", "width", "height")):
        table[name] = [row[index] for row in body.memsets]
    return table


def _copies(body: Body, nodes: npt.NDArray[np.int64], path: tuple[int, ...], problems: list[Problem]) -> bytes:
    """Clear the fields of each copy that its memory types leave without meaning, and every host pointer."""
    rows = np.frombuffer(b"".join(body.copies), np.uint8).reshape(-1, COPY_SIZE).copy()
    for row, index in zip(rows, nodes.tolist(), strict=True):
        for name, side in COPY_SIDES.items():
            kind = int(row[side])
            row[side + 4 : side + 16] = 0
            row[side + 24 : side + 40] = 0
            if kind in (HOST, ARRAY):
                row[side + 16 : side + 24] = 0
                what = "host memory" if kind == HOST else "an array"
                problems.append(Problem(HOST_COPY, f"its {name} is {what}", (*path, index)))
    return bytes(rows)
