"""One graph node at a time, for those who render or compare. Built on demand; the tables are what is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foundry.model.capture import Process
from foundry.model.constants import NONE, NodeType
from foundry.model.graphs import Graph, Group
from foundry.model.kernels import Kernel
from foundry.model.tables import COPY_SIZE, Words, padded_sizes, starts


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node of a graph. Fields of other node types are None, `reason` is empty if it can be rebuilt.

    `row` is that of a kernel node in `Process.launches`.
    """

    index: int
    type: NodeType | int
    reason: str
    kernel: Kernel | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    shared_bytes: int | None = None
    parameters: bytes | None = None
    attributes: tuple[tuple[int, bytes], ...] = ()
    memset: dict[str, int] | None = None
    copy: bytes | None = None
    event: int | None = None
    child: int | None = None
    row: int | None = None


class GraphView:
    """Random access to the nodes of a process's graphs."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @cached_property
    def _first(self) -> dict[NodeType, npt.NDArray[np.int64]]:
        """For each node type that owns rows, the first row of each body."""
        process = self.process
        first = {}
        for kind in (
            NodeType.KERNEL,
            NodeType.MEMSET,
            NodeType.MEMCPY,
            NodeType.GRAPH,
            NodeType.EVENT_RECORD,
            NodeType.WAIT_EVENT,
        ):
            each = np.array([int(rows(group, kind).sum()) for group in process.groups] or [0], np.int64)
            first[kind] = starts(each[process.bodies])
        events = first[NodeType.EVENT_RECORD] + first[NodeType.WAIT_EVENT]
        first[NodeType.EVENT_RECORD] = first[NodeType.WAIT_EVENT] = events
        return first

    @cached_property
    def _parameter_starts(self) -> npt.NDArray[np.int64]:
        return starts(padded_sizes(parameter_sizes(self.process)))

    def kernel_rows(self, begin: int, end: int) -> npt.NDArray[np.int64]:
        """Give the rows of the kernel nodes of some bodies."""
        first = self._first[NodeType.KERNEL]
        return np.arange(int(first[begin]), int(first[end]))

    def group(self, body: int) -> Group:
        """Give the topology of a body."""
        return self.process.groups[int(self.process.bodies[body])]

    def nodes(self, body: int) -> Iterator[NodeView]:
        """Go through the nodes of a body in order."""
        process, group = self.process, self.group(body)
        at = {kind: int(first[body]) for kind, first in self._first.items()}
        for index, node in enumerate(group.nodes):
            number = int(node["type"])
            kind = NodeType(number) if number in NodeType._value2member_map_ else number
            reason = process.node_reasons[int(node["reason"])] if node["reason"] != NONE else ""
            if reason or kind not in at:
                yield NodeView(index, kind, reason)
                continue
            assert isinstance(kind, NodeType)
            row = at[kind]
            at[kind] += 1
            if kind == NodeType.KERNEL:
                launch = process.launches[row]
                begin = int(self._parameter_starts[row])
                yield NodeView(
                    index,
                    kind,
                    "",
                    kernel=process.kernels[int(node["kernel"])] if node["kernel"] != NONE else None,
                    grid=_triple(launch["grid"]),
                    block=_triple(launch["block"]),
                    shared_bytes=int(launch["shared_bytes"]),
                    parameters=process.parameters[begin : begin + int(node["parameter_size"])].tobytes(),
                    attributes=process.attribute_sets[int(node["attributes"])],
                    row=row,
                )
            elif kind == NodeType.MEMSET:
                memset = process.memsets[row]
                names = process.memsets.dtype.names or ()
                yield NodeView(index, kind, "", memset={name: int(memset[name]) for name in names})
            elif kind == NodeType.MEMCPY:
                yield NodeView(index, kind, "", copy=process.copies[row * COPY_SIZE : (row + 1) * COPY_SIZE].tobytes())
            elif kind == NodeType.GRAPH:
                yield NodeView(index, kind, "", child=int(process.children[row]))
            else:
                at[NodeType.EVENT_RECORD] = at[NodeType.WAIT_EVENT] = row + 1
                yield NodeView(index, kind, "", event=int(process.event_nodes[row]))

    def graph_nodes(self, graph: Graph) -> Iterator[NodeView]:
        """Go through the nodes of a graph's top body in order."""
        return self.nodes(graph.body)


def rows(group: Group, kind: NodeType) -> npt.NDArray[np.bool_]:
    """Tell which nodes of a group own a row in the table of that kind."""
    mask: npt.NDArray[np.bool_] = (group.nodes["type"] == int(kind)) & (group.nodes["reason"] == NONE)
    return mask


def parameter_sizes(process: Process) -> npt.NDArray[np.uint32]:
    """Give the size of each kernel node's parameter block, over all bodies in order."""
    return parameter_sizes_of(process.groups, process.bodies)


def kernel_ids(process: Process) -> npt.NDArray[np.uint32]:
    """Give the kernel of each kernel node, over all bodies in order."""
    return kernel_ids_of(process.groups, process.bodies)


def parameter_sizes_of(groups: Sequence[Group], bodies: Words) -> npt.NDArray[np.uint32]:
    """Give the size of each kernel node's parameter block, from the topology alone."""
    return _kernel_column(groups, bodies, "parameter_size")


def kernel_ids_of(groups: Sequence[Group], bodies: Words) -> npt.NDArray[np.uint32]:
    """Give the kernel of each kernel node, from the topology alone."""
    return _kernel_column(groups, bodies, "kernel")


def _kernel_column(groups: Sequence[Group], bodies: Words, name: str) -> npt.NDArray[np.uint32]:
    each = [group.nodes[name][rows(group, NodeType.KERNEL)] for group in groups]
    picked = [each[group] for group in bodies.tolist()]
    return np.concatenate(picked) if picked else np.zeros(0, np.uint32)


def _triple(values: npt.NDArray[np.uint32]) -> tuple[int, int, int]:
    return int(values[0]), int(values[1]), int(values[2])
