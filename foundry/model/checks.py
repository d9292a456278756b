"""Is a capture sound: does every index refer to something, does every count agree with what it counts.

An archive is read from outside, so nothing behind the reader may meet an index that leads nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from foundry.model.capture import Capture, File, Library, LibraryPlace, Process
from foundry.model.constants import NONE, NodeType
from foundry.model.graphs import Group
from foundry.model.memory import placed
from foundry.model.moving import check_proof
from foundry.model.restorable import Restorable, graph_ends
from foundry.model.tables import COPY_SIZE, Table, Words, padded_sizes, sorted_edges, starts
from foundry.model.unsound import UnsoundError
from foundry.model.views import parameter_sizes, rows

MOST_NODES = 1 << 24
MOST_BODIES = 1 << 20
LARGEST_BLOCK = 1 << 16
LARGEST_CONTAINER = 1 << 30
LARGEST_OFFSET = 1 << 53
LARGEST_ARCHITECTURE = 9999
_BUILD_ID = re.compile(r"(?:[0-9a-f]{2}){1,64}")
_ROLE = re.compile(r"[A-Za-z0-9._-]{1,128}")
_EVENTS = (NodeType.EVENT_RECORD, NodeType.WAIT_EVENT)


def _require(condition: bool | np.bool_, text: str) -> None:
    if not condition:
        raise UnsoundError(text)


def _indices(values: npt.NDArray[np.uint32], count: int, what: str, *, optional: bool = False) -> None:
    good = values < count
    if optional:
        good |= values == NONE
    _require(good.all(), f"{what} refers to something that is not there")


def _index(value: int, count: int, what: str, *, optional: bool = False) -> None:
    _require(0 <= value < count or (optional and value == NONE), f"{what} refers to something that is not there")


def check_topology(groups: Sequence[Group], bodies: Words, counts: dict[NodeType, int]) -> None:
    """Check that the bodies own as many rows as there are, before anything is laid out by them."""
    _require(len(bodies) <= MOST_BODIES, f"{len(bodies)} bodies are past the limit of {MOST_BODIES}")
    _indices(bodies, len(groups), "a body")
    uses = np.bincount(bodies, minlength=len(groups)).tolist()
    nodes = sum(use * len(group.nodes) for use, group in zip(uses, groups, strict=True))
    _require(nodes <= MOST_NODES, f"{nodes} nodes are past the limit of {MOST_NODES}")
    for kind, count in counts.items():
        kinds = _EVENTS if kind in _EVENTS else (kind,)
        owned = sum(
            use * int(sum(rows(group, one).sum() for one in kinds)) for use, group in zip(uses, groups, strict=True)
        )
        _require(owned == count, f"{owned} {kind.name} nodes have {count} rows")


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
    _require(len(set(roles)) == len(roles), "two processes have the same role")
    sizes = [len(blob) for blob in capture.blobs]
    for process in capture.processes:
        check_process(process, sizes)
    check_files(capture.files, len(sizes))
    check_outside(capture.outside, sizes)


def check_outside(places: Mapping[int, LibraryPlace], blob_sizes: Sequence[int]) -> None:
    """Check what is said of blobs that lie in library files."""
    for index, place in places.items():
        _index(index, len(blob_sizes), "a library place")
        where = f"blob {index}, its library"
        _require(_file_name(place.name), f"{where}: the name {place.name!r} is not a file name")
        _require(_BUILD_ID.fullmatch(place.build_id) is not None, f"{where}: the build id is not one")
        _require(0 < place.size <= LARGEST_CONTAINER, f"{where}: {place.size} bytes are past the limit")
        _require(place.offset + place.size <= LARGEST_OFFSET, f"{where}: byte {place.offset} is past the limit")
        _require(0 <= place.architecture <= LARGEST_ARCHITECTURE, f"{where}: {place.architecture} is no architecture")
        _require(0 < blob_sizes[index] <= LARGEST_CONTAINER, f"{where}: the blob's size is past the limit")
        whole = place.architecture > 0 or place.size == blob_sizes[index]
        _require(whole, f"{where}: {place.size} bytes there are {blob_sizes[index]} here")


def _check_libraries(libraries: Sequence[Library]) -> None:
    for library in libraries:
        _require(_file_name(library.name), f"the library name {library.name!r} is not a file name")
        known = not library.build_id or _BUILD_ID.fullmatch(library.build_id) is not None
        _require(known, f"the build id of the library `{library.name}` is not one")
    _require(list(libraries) == sorted(set(libraries)), "libraries are not in order")


def _file_name(name: str) -> bool:
    return 0 < len(name) <= 255 and name not in (".", "..") and not set(name) & {"/", "\0"}


def check_files(files: Sequence[File], blobs: int) -> None:
    """Check the cache files: no name may lead out of its folder."""
    places = set()
    for file in files:
        parts = file.path.split("/")
        safe = all(part not in ("", ".", "..") and "\0" not in part and "\\" not in part for part in parts)
        _require(safe and _ROLE.fullmatch(file.cache) is not None, f"the file name {file.path!r} is not safe")
        _require(file.cache not in (".", ".."), f"the cache name {file.cache!r} is not safe")
        _require(0 <= file.mode <= 0o777, f"the file mode {file.mode:o} is not one")
        _index(file.blob, blobs, f"the file {file.path!r}")
        places.add((file.cache, file.path))
    _require(len(places) == len(files), "a file is there twice")


def check_process(process: Process, blob_sizes: Sequence[int]) -> None:
    """Check one process; raises UnsoundError."""
    try:
        _check_process(process, blob_sizes)
    except UnsoundError as error:
        raise UnsoundError(f"process `{process.role}`: {error}") from None


def _check_process(process: Process, blob_sizes: Sequence[int]) -> None:
    _require(_ROLE.fullmatch(process.role) is not None and set(process.role) != {"."}, "its role is not a name")
    blobs, allocations = len(blob_sizes), len(process.allocations)
    contexts = len(process.contexts)
    ordinals = [device.ordinal for device in process.devices]
    _require(len(set(ordinals)) == len(ordinals), "two devices have the same ordinal")
    for device in process.devices:
        _require(device.sound_range, "a device's range is not one")
    _require(placed(process.allocations, process.devices).all(), "an allocation lies outside its arena")
    for item in process.ranges:
        _index(item.image, len(process.images), "a range", optional=True)
    for contents in process.contents:
        _index(contents.blob, blobs, "contents")
        _require(blob_sizes[contents.blob] == contents.size, "contents have another size than their blob")
    for image in process.images:
        _index(image.blob, blobs, "an image", optional=True)
        _index(image.original, blobs, "an image", optional=True)
        _index(image.context, contexts, "an image", optional=True)
    for kernel in process.kernels:
        _index(kernel.image, len(process.images), f"the kernel `{kernel.name}`", optional=True)
    tables: dict[str, npt.NDArray[np.generic]] = {
        name: getattr(process, name) for name in ("launches", "memsets", "copies", "children", "event_nodes")
    }
    _require(len(process.copies) % COPY_SIZE == 0, "copies are cut")
    check_topology(process.groups, process.bodies, row_counts(tables))
    for index, group in enumerate(process.groups):
        _check_group(process, group, index)
    sizes = parameter_sizes(process)
    _require(len(process.parameters) == int(padded_sizes(sizes).sum()), "parameters do not fit their nodes")
    _indices(process.event_nodes, len(process.events), "an event node", optional=True)
    _check_bodies(process)
    labels = set()
    for graph in process.graphs:
        _index(graph.context, contexts, "a graph", optional=True)
        if graph.references:
            _index(max(graph.references), allocations, "a graph")
        _require(list(graph.references) == sorted(set(graph.references)), "references are not in order")
        _require(bool(graph.reason) == bool(graph.reason_code), "a reason has no code, or a code no reason")
        labels.add((graph.set, graph.key))
    _require(len(labels) == len(process.graphs), "two graphs have the same name")
    _check_restorable(process, blob_sizes)
    _check_libraries(process.libraries)
    if process.proof is not None:
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
        _require(problem is None, f"{name} {problem.sentence() if problem else ''}")
        events = unknown_events[owned[graph.body] : owned[end]]
        _require(not events.any(), f"{name} a node names an unknown event")


def _check_group(process: Process, group: Group, index: int) -> None:
    nodes, edges = group.nodes, group.edges
    name = f"group {index}"
    kernel, child = rows(group, NodeType.KERNEL), rows(group, NodeType.GRAPH)
    _indices(nodes["reason"], len(process.node_reasons), name, optional=True)
    _indices(nodes["context"], len(process.contexts), name, optional=True)
    _indices(nodes["kernel"][kernel], len(process.kernels), name, optional=True)
    _indices(nodes["attributes"][kernel], len(process.attribute_sets), name)
    _indices(nodes["child"][child], index, name)
    _require((nodes["parameter_size"] <= LARGEST_BLOCK).all(), f"{name} has a parameter block past the limit")
    _require((nodes["parameter_size"][~kernel] == 0).all(), f"{name} has parameters for a node that takes none")
    for field, owners in (("kernel", kernel), ("attributes", kernel), ("child", child)):
        _require((nodes[field][~owners] == NONE).all(), f"{name} has a {field} for a node that takes none")
    _indices(edges["start"], len(nodes), f"{name}, an edge")
    _indices(edges["end"], len(nodes), f"{name}, an edge")
    _require(_sorted(edges), f"{name} has edges out of order")


def _sorted(edges: Table) -> bool:
    return len(sorted_edges(edges)) == len(edges) and bool((sorted_edges(edges) == edges).all())


def _check_bodies(process: Process) -> None:
    """Check that bodies are in pre-order, with a tree of them for each graph."""
    wanted = [group.nodes["child"][rows(group, NodeType.GRAPH)].tolist() for group in process.groups]
    bodies, children = process.bodies.tolist(), iter(process.children.tolist())
    tops = iter(graph.body for graph in process.graphs)
    expected: list[tuple[int, int]] = []
    for body, group in enumerate(bodies):
        if expected:
            child, child_group = expected.pop()
            _require(child == body and child_group == group, f"body {body} is not the child that its parent names")
        else:
            _require(next(tops, None) == body, f"body {body} belongs to no graph")
        own = [(next(children), child_group) for child_group in wanted[group]]
        expected.extend(reversed(own))
    _require(not expected and next(tops, None) is None, "a graph has no body")
