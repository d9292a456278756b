"""Groups, graphs, and a record for each node of each restorable graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foundry.image import layout
from foundry.image.strings import Strings
from foundry.model import NONE, Graph, Group, NodeType, Process
from foundry.model.restorable import graph_ends
from foundry.model.tables import COPY_SIZE, Bytes, Table, distinct, padded_sizes, starts
from foundry.model.views import parameter_sizes, rows

_ROW_KINDS = (NodeType.KERNEL, NodeType.MEMSET, NodeType.MEMCPY, NodeType.GRAPH)


NAMELESS = "it was captured without a name, so no program can ask for it"


class Bodies:
    """Which bodies, groups and kernels these graphs need."""

    def __init__(self, process: Process, graphs: Sequence[Graph]) -> None:
        self.process = process
        ends = {graph.body: end for graph, end in zip(process.graphs, graph_ends(process), strict=True)}
        self.mask = np.zeros(len(process.bodies), np.bool_)
        for graph in graphs:
            self.mask[graph.body : ends[graph.body]] = True
        self.chosen = process.bodies[self.mask]
        self.groups: list[int] = distinct(self.chosen).tolist()
        used = [self._kernels(process.groups[number]) for number in self.groups]
        self.kernels: list[int] = distinct(np.concatenate(used)).tolist() if used else []

    @staticmethod
    def _kernels(group: Group) -> npt.NDArray[np.uint32]:
        return np.asarray(group.nodes["kernel"][rows(group, NodeType.KERNEL)], np.uint32)

    def node_counts(self) -> npt.NDArray[np.int64]:
        """Count the nodes of each chosen body."""
        each = np.array([len(group.nodes) for group in self.process.groups] or [0], np.int64)
        return each[self.chosen]

    def row_mask(self, *kinds: NodeType) -> npt.NDArray[np.bool_]:
        """Tell which rows of a table belong to chosen bodies."""
        groups = self.process.groups
        each = np.array([sum(int(rows(group, kind).sum()) for kind in kinds) for group in groups] or [0], np.int64)
        return np.repeat(self.mask, each[self.process.bodies])


class Topology:
    """The groups, their nodes and edges; `group_index` gives the image's number of a model's group."""

    def __init__(self, process: Process, bodies: Bodies, kernel_index: npt.NDArray[np.uint32]) -> None:
        chosen = [process.groups[number] for number in bodies.groups]
        self.group_index = np.full(len(process.groups), NONE, np.uint32)
        self.group_index[bodies.groups] = np.arange(len(chosen))
        self.groups = np.zeros(len(chosen), layout.GROUP)
        for kind, counts in (
            ("node", [len(group.nodes) for group in chosen]),
            ("edge", [len(group.edges) for group in chosen]),
        ):
            self.groups[f"{kind}_count"] = counts
            self.groups[f"first_{kind}"] = starts(np.array(counts, np.int64))[:-1]
        source = np.concatenate([group.nodes for group in chosen]) if chosen else np.zeros(0, layout.NODE)
        self.nodes = np.zeros(len(source), layout.NODE)
        self.nodes["kernel"] = self.nodes["child_group"] = NONE
        if len(source):
            self._nodes(process, source, kernel_index)
        self.edges = np.zeros(sum(len(group.edges) for group in chosen), layout.EDGE)
        if len(self.edges):
            edges = np.concatenate([group.ordered_edges for group in chosen])
            self.edges["from"], self.edges["to"], self.edges["data"] = edges["start"], edges["end"], edges["data"]
        self.node_attributes = _attributes(process)

    def _nodes(self, process: Process, source: Table, kernel_index: npt.NDArray[np.uint32]) -> None:
        self.nodes["type"] = source["type"]
        kernel = source["type"] == NodeType.KERNEL
        self.nodes["kernel"][kernel] = kernel_index[source["kernel"][kernel]]
        sizes = np.array([len(each) for each in process.attribute_sets], np.int64)
        first, which = starts(sizes)[:-1], source["attributes"][kernel]
        self.nodes["first_attribute"][kernel], self.nodes["attribute_count"][kernel] = first[which], sizes[which]
        child = source["type"] == NodeType.GRAPH
        self.nodes["child_group"][child] = self.group_index[source["child"][child]]


def _attributes(process: Process) -> Table:
    pairs = [pair for each in process.attribute_sets for pair in each]
    table = np.zeros(len(pairs), layout.NODE_ATTRIBUTE)
    for row, (number, value) in zip(table, pairs, strict=True):
        row["id"] = number
        row["value"][: len(value)] = np.frombuffer(value, np.uint8)
    return table


class Records:
    """A record a node, and the tables that records point into."""

    def __init__(self, process: Process, bodies: Bodies) -> None:
        counts = bodies.node_counts()
        self._first = np.zeros(len(process.bodies), np.int64)
        self._first[bodies.mask] = starts(counts)[:-1]
        self.records = np.zeros(int(counts.sum()), np.dtype((np.void, layout.RECORD_SIZE)))
        types = [process.groups[number].nodes["type"] for number in bodies.chosen.tolist()]
        self._types = np.concatenate(types) if types else np.zeros(0, np.uint32)
        self._kernels(process, bodies)
        memsets = process.memsets[bodies.row_mask(NodeType.MEMSET)]
        self._fill(NodeType.MEMSET, layout.MEMSET_RECORD, {name: memsets[name] for name in memsets.dtype.names or ()})
        copies = process.copies.reshape(-1, COPY_SIZE)[bodies.row_mask(NodeType.MEMCPY)]
        self.copies: Bytes = copies.reshape(-1)
        self._fill(NodeType.MEMCPY, layout.COPY_RECORD, {"copy": np.arange(len(copies))})
        events = process.event_nodes[bodies.row_mask(NodeType.EVENT_RECORD, NodeType.WAIT_EVENT)]
        both = np.isin(self._types, (NodeType.EVENT_RECORD, NodeType.WAIT_EVENT))
        self._put(both, layout.EVENT_RECORD, {"event": events})
        children = process.children[bodies.row_mask(NodeType.GRAPH)]
        self._fill(NodeType.GRAPH, layout.CHILD_RECORD, {"first_record": self._first[children]})

    def _kernels(self, process: Process, bodies: Bodies) -> None:
        mask = bodies.row_mask(NodeType.KERNEL)
        sizes = parameter_sizes(process)
        padded = padded_sizes(sizes)
        launches = process.launches[mask]
        self.parameter_bytes = process.parameters if mask.all() else process.parameters[np.repeat(mask, padded)]
        fields = {name: launches[name] for name in ("grid", "block", "shared_bytes")}
        fields["parameter_size"] = sizes[mask]
        self.block_starts = starts(padded[mask])
        fields["parameter_offset"] = self.block_starts[:-1]
        self._fill(NodeType.KERNEL, layout.KERNEL_RECORD, fields)

    def _fill(self, kind: NodeType, dtype: np.dtype[np.void], fields: dict[str, npt.NDArray[np.generic]]) -> None:
        self._put(self._types == kind, dtype, fields)

    def _put(
        self, mask: npt.NDArray[np.bool_], dtype: np.dtype[np.void], fields: dict[str, npt.NDArray[np.generic]]
    ) -> None:
        part = np.zeros(int(mask.sum()), dtype)
        for name, values in fields.items():
            part[name] = values
        self.records[mask] = part.view(self.records.dtype)

    def rows_of(self, kind: NodeType) -> npt.NDArray[np.int64]:
        """List the records of nodes of that kind, and one more for what is not there."""
        return np.append(np.flatnonzero(self._types == kind), -1)

    def first(self, body: int) -> int:
        """Tell where a body's records start."""
        return int(self._first[body])


def graph_table(
    process: Process,
    topology: Topology,
    records: Records,
    reference_index: npt.NDArray[np.uint32],
    strings: Strings,
) -> tuple[Table, npt.NDArray[np.uint32]]:
    """Lay out all graphs, and the references of those that can be restored."""
    found: list[npt.NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
    proven = set() if process.proof is None else set(process.proof.graphs.tolist())
    table = np.zeros(len(process.graphs), layout.GRAPH)
    at = 0
    for index, (row, graph) in enumerate(zip(table, process.graphs, strict=True)):
        row["set"], row["key"] = strings.add(graph.set), strings.add(graph.key)
        reason = graph.reason or ("" if graph.restored else NAMELESS)
        row["metadata"], row["reason"] = strings.add(graph.metadata), strings.add(reason)
        row["instantiate_flags"], row["first_use"] = graph.instantiate_flags, graph.first_use
        row["device"], row["context"] = graph.device, _context(process, graph)
        row["restorable"], row["moves"] = graph.restored, graph.restored and index in proven
        row["group"], row["first_reference"] = NONE, at
        if graph.restored:
            row["group"] = topology.group_index[process.bodies[graph.body]]
            row["first_record"] = records.first(graph.body)
            found.append(reference_index[list(graph.references)])
            row["reference_count"] = len(graph.references)
            at += len(graph.references)
    return table, np.concatenate(found)


def _context(process: Process, graph: Graph) -> int:
    if graph.context == NONE or process.contexts[graph.context].primary:
        return NONE
    return process.contexts[graph.context].ordinal
