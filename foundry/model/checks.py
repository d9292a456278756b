"""Is a capture sound: does every index refer to something, does every count agree with what it counts.

An archive is read from outside, so nothing behind the reader may meet an index that leads nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from foundry.model.capture import Capture, Process
from foundry.model.constants import NONE, NodeType
from foundry.model.file_checks import NAME, check_files, check_libraries, check_outside, check_start_files
from foundry.model.graphs import Group
from foundry.model.memory import placed
from foundry.model.moving import check_proof
from foundry.model.restorable import Restorable, graph_ends
from foundry.model.tables import COPY_SIZE, Table, Words, padded_sizes, starts
from foundry.model.unsound import UnsoundError, require, require_index
from foundry.model.views import parameter_sizes, rows

MOST_NODES = 1 << 24
MOST_BODIES = 1 << 20
LARGEST_BLOCK = 1 << 16
_EVENTS = (NodeType.EVENT_RECORD, NodeType.WAIT_EVENT)


def _indices(values: npt.NDArray[np.uint32], count: int, what: str, *, optional: bool = False) -> None:
    good = values < count
    if optional:
        good |= values == NONE
    require(good.all(), f"{what} refers to something that is not there")


def check_topology(groups: Sequence[Group], bodies: Words, counts: dict[NodeType, int]) -> None:
    """Check that the bodies own as many rows as there are, before anything is laid out by them."""
    require(len(bodies) <= MOST_BODIES, f"{len(bodies)} bodies are past the limit of {MOST_BODIES}")
    _indices(bodies, len(groups), "a body")
    uses = np.bincount(bodies, minlength=len(groups)).tolist()
    nodes = sum(use * len(group.nodes) for use, group in zip(uses, groups, strict=True))
    require(nodes <= MOST_NODES, f"{nodes} nodes are past the limit of {MOST_NODES}")
    for kind, count in counts.items():
        kinds = _EVENTS if kind in _EVENTS else (kind,)
        owned = sum(
            use * int(sum(rows(group, one).sum() for one in kinds)) for use, group in zip(uses, groups, strict=True)
        )
        require(owned == count, f"{owned} {kind.name} nodes have {count} rows")


def row_counts(tables: dict[str, npt.NDArray[np.generic]]) -> dict[NodeType, int]:
    """Count the rows of the tables that bodies own."""
    return {
        NodeType.KERNEL: len(tables["launches"]),
        NodeType.MEMSET: len(tables["memsets"]),
        NodeType.MEMCPY: len(tables["copies"]) // COPY_SIZE,
        NodeType.GRAPH: len(tables["children"]),
        NodeType.EVENT_RECORD: len(tables["event_nodes"]),
    }


def check_capture(capture: Capture) -> None:
    """Check a whole capture; raises UnsoundError."""
    roles = [process.role for process in capture.processes]
    require(len(set(roles)) == len(roles), "two processes have the same role")
    sizes = [len(blob) for blob in capture.blobs]
    for process in capture.processes:
        check_process(process, sizes)
        check_proven(process)
    check_files(capture.files, len(sizes))
    check_outside(capture.outside, sizes)
    check_start_files(capture.start_files)


def check_process(process: Process, blob_sizes: Sequence[int]) -> None:
    """Check one process but for its proof and the contents of its parameters; raises UnsoundError."""
    with _named(process):
        _check_process(process, blob_sizes)


@contextmanager
def _named(process: Process) -> Iterator[None]:
    try:
        yield
    except UnsoundError as error:
        raise UnsoundError(f"process `{process.role}`: {error}") from None


def _check_process(process: Process, blob_sizes: Sequence[int]) -> None:
    require(NAME.fullmatch(process.role) is not None and set(process.role) != {"."}, "its role is not a name")
    blobs, allocations = len(blob_sizes), len(process.allocations)
    contexts = len(process.contexts)
    ordinals = [device.ordinal for device in process.devices]
    require(len(set(ordinals)) == len(ordinals), "two devices have the same ordinal")
    for device in process.devices:
        require(device.sound_range, "a device's range is not one")
    require(placed(process.allocations, process.devices).all(), "an allocation lies outside its arena")
    for item in process.ranges:
        require_index(item.image, len(process.images), "a range", optional=True)
    for contents in process.contents:
        require_index(contents.blob, blobs, "contents")
        require(blob_sizes[contents.blob] == contents.size, "contents have another size than their blob")
    for image in process.images:
        require_index(image.blob, blobs, "an image", optional=True)
        require_index(image.original, blobs, "an image", optional=True)
        require_index(image.context, contexts, "an image", optional=True)
    for kernel in process.kernels:
        require_index(kernel.image, len(process.images), f"the kernel `{kernel.name}`", optional=True)
    tables: dict[str, npt.NDArray[np.generic]] = {
        name: getattr(process, name) for name in ("launches", "memsets", "copies", "children", "event_nodes")
    }
    require(len(process.copies) % COPY_SIZE == 0, "copies are cut")
    check_topology(process.groups, process.bodies, row_counts(tables))
    for index, group in enumerate(process.groups):
        _check_group(process, group, index)
    sizes = parameter_sizes(process)
    require(len(process.parameters) == int(padded_sizes(sizes).sum()), "parameters do not fit their nodes")
    _indices(process.event_nodes, len(process.events), "an event node", optional=True)
    _check_bodies(process)
    labels = set()
    for graph in process.graphs:
        require_index(graph.context, contexts, "a graph", optional=True)
        if graph.references:
            require_index(max(graph.references), allocations, "a graph")
        require(list(graph.references) == sorted(set(graph.references)), "references are not in order")
        require(bool(graph.reason) == bool(graph.reason_code), "a reason has no code, or a code no reason")
        labels.add((graph.set, graph.key))
    require(len(labels) == len(process.graphs), "two graphs have the same name")
    _check_restorable(process, blob_sizes)
    check_libraries(process.libraries)


def check_proven(process: Process) -> None:
    """Check what a process says of its proof, if it has one; raises UnsoundError."""
    if process.proof is None:
        return
    with _named(process):
        check_proof(process, process.proof)


def _check_restorable(process: Process, blob_sizes: Sequence[int]) -> None:
    judge = Restorable(process, blob_sizes)
    unknown_events = process.event_nodes == NONE
    counts = [int((rows(group, _EVENTS[0]) | rows(group, _EVENTS[1])).sum()) for group in process.groups]
    owned = starts(np.array([counts[group] for group in process.bodies.tolist()], np.int64))
    for graph, end in zip(process.graphs, graph_ends(process), strict=True):
        if not graph.restorable:
            continue
        name = f"the graph `{graph.set}` `{graph.key}` is called restorable, but"
        problem = judge.problem(graph, end)
        require(problem is None, f"{name} {problem.sentence() if problem else ''}")
        events = unknown_events[owned[graph.body] : owned[end]]
        require(not events.any(), f"{name} a node names an unknown event")


def _check_group(process: Process, group: Group, index: int) -> None:
    nodes, edges = group.nodes, group.edges
    name = f"group {index}"
    kernel, child = rows(group, NodeType.KERNEL), rows(group, NodeType.GRAPH)
    _indices(nodes["reason"], len(process.node_reasons), name, optional=True)
    _indices(nodes["context"], len(process.contexts), name, optional=True)
    _indices(nodes["kernel"][kernel], len(process.kernels), name, optional=True)
    _indices(nodes["attributes"][kernel], len(process.attribute_sets), name)
    _indices(nodes["child"][child], index, name)
    require((nodes["parameter_size"] <= LARGEST_BLOCK).all(), f"{name} has a parameter block past the limit")
    require((nodes["parameter_size"][~kernel] == 0).all(), f"{name} has parameters for a node that takes none")
    for field, owners in (("kernel", kernel), ("attributes", kernel), ("child", child)):
        require((nodes[field][~owners] == NONE).all(), f"{name} has a {field} for a node that takes none")
    _indices(edges["start"], len(nodes), f"{name}, an edge")
    _indices(edges["end"], len(nodes), f"{name}, an edge")
    require(_sorted(edges), f"{name} has edges out of order")
    if len(group.order):
        require(_ordered(edges, group.order), f"{name} has dependencies out of order")


def _sorted(edges: Table) -> bool:
    """Tell whether edges are in the order of `sorted_edges`, each once."""
    ascends = np.zeros(max(len(edges) - 1, 0), np.bool_)
    for column in (edges["end"], edges["start"], edges["data"].byteswap()):
        ascends = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & ascends)
    return bool(ascends.all())


def _ordered(edges: Table, order: Words) -> bool:
    """Tell whether that is an order of all edges by the node that they lead to, and not the one that they have."""
    if len(order) != len(edges) or not (np.sort(order) == np.arange(len(edges))).all():
        return False
    plain = np.argsort(edges["end"], kind="stable")
    return bool((edges["end"][order] == edges["end"][plain]).all() and (order != plain).any())


def _check_bodies(process: Process) -> None:
    """Check that bodies are in pre-order, with a tree of them for each graph."""
    wanted = [group.nodes["child"][rows(group, NodeType.GRAPH)].tolist() for group in process.groups]
    bodies, children = process.bodies.tolist(), iter(process.children.tolist())
    tops = iter(graph.body for graph in process.graphs)
    expected: list[tuple[int, int]] = []
    for body, group in enumerate(bodies):
        if expected:
            child, child_group = expected.pop()
            require(child == body and child_group == group, f"body {body} is not the child that its parent names")
        else:
            require(next(tops, None) == body, f"body {body} belongs to no graph")
        own = [(next(children), child_group) for child_group in wanted[group]]
        expected.extend(reversed(own))
    require(not expected and next(tops, None) is None, "a graph has no body")
