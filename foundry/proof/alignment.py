"""Do two processes show the same program: devices, allocations, contents, kernels, graphs, nodes, edges."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from foundry.diff.flat import Flat, Index, Pairing, pair
from foundry.findings import PROOF_UNLIKE
from foundry.model import NONE, Arena, Process
from foundry.model.tables import Table
from foundry.proof.verdicts import Verdicts, place_of

ARENA_NAMES = {Arena.MAIN: "main", Arena.SCRATCH: "scratch", Arena.GRAPH: "graph"}


def obstacle(first: Process, second: Process, blobs: tuple[Sequence[bytes], Sequence[bytes]]) -> str:
    """Say why nothing of the processes can be compared, or nothing."""
    return _devices(first, second) or _allocations(first, second) or _contents((first, second), blobs)


def _devices(first: Process, second: Process) -> str:
    others = {device.ordinal: device for device in second.devices}
    for device in first.devices:
        other = others.pop(device.ordinal, None)
        if other is None:
            return f"device {device.ordinal} was not used in the second capture"
        if (device.name, device.arena_size) != (other.name, other.arena_size):
            return f"device {device.ordinal} is another in the second capture"
        if device.base == other.base and device.base:
            return f"the memory of device {device.ordinal} lies at {device.base:#x} in both captures"
    return f"device {next(iter(others))} was used in the second capture only" if others else ""


def _log(process: Process) -> tuple[Table, npt.NDArray[np.uint64]]:
    """Give what a restore compares or claims, in the order of making, with each allocation's place in its device."""
    end = max([process.committed if process.committed != NONE else 0, *(graph.step for graph in process.graphs)])
    table = process.allocations
    table = table[(table["arena"] != Arena.SCRATCH) & (table["born"] < (end or NONE))]
    offset = np.zeros(len(table), "<u8")
    for device in process.devices:
        own = table["device"] == device.ordinal
        offset[own] = table["address"][own] - np.uint64(device.base)
    return table, offset


def _allocations(first: Process, second: Process) -> str:
    (left, places), (right, others) = _log(first), _log(second)
    count = min(len(left), len(right))
    same = places[:count] == others[:count]
    for name in ("device", "arena", "ordinal", "size", "origin"):
        same &= left[name][:count] == right[name][:count]
    if same.all() and len(left) == len(right):
        return ""
    at = int(np.argmin(same)) if not same.all() else count
    sides = [_allocation(*side, at) if at < len(side[0]) else "none" for side in ((left, places), (right, others))]
    return f"the allocations differ: {sides[0]} in the first capture, {sides[1]} in the second"


def _allocation(table: Table, places: npt.NDArray[np.uint64], at: int) -> str:
    row = table[at]
    arena = ARENA_NAMES.get(int(row["arena"]), "unknown")  # type: ignore[call-overload]
    return (
        f"{arena} allocation {row['ordinal']} of device {row['device']}, {row['size']} bytes at +{int(places[at]):#x} "
        f"by thread {row['born_thread']}"
    )


def _contents(processes: tuple[Process, Process], blobs: tuple[Sequence[bytes], Sequence[bytes]]) -> str:
    """Contents that are not the same may hold addresses, which nobody moves."""
    sides = []
    for process, bytes_of in zip(processes, blobs, strict=True):
        bases = {device.base: device for device in process.devices}
        sides.append(
            [
                (next((item.address - base for base in bases if bases[base].arena(item.address) is not None), None),
                 bytes_of[item.blob])
                for item in process.contents
            ]
        )  # fmt: skip
    if len(sides[0]) != len(sides[1]):
        return f"the contents of {len(sides[0])} and of {len(sides[1])} stretches of memory were recorded"
    for one, other in zip(*sides, strict=True):
        if one != other:
            return f"the recorded contents of memory at +{one[0] or 0:#x} differ"
    return ""


def aligned(role: str, first: Process, second: Process) -> tuple[tuple[Flat, Flat], Pairing]:
    """Pair graphs, bodies and nodes. Equal kernels get the same number; an unknown one is like no other."""
    numbers: dict[Hashable, int] = {}
    flats = [
        Flat(process, np.array([numbers.setdefault(key, len(numbers)) for key in _kernel_keys(process)] + [-1]))
        for process in (first, second)
    ]
    return (flats[0], flats[1]), pair(role, flats[0], flats[1])


def _kernel_keys(process: Process) -> Iterator[Hashable]:
    for kernel in process.kernels:
        image = process.images[kernel.image] if kernel.image < len(process.images) else None
        named = (image.key, image.instance, image.api) if image else None
        yield kernel.name, named, kernel.parameters, kernel.attributes, kernel.device


def _attributes(sides: tuple[Process, Process]) -> tuple[Index, Index]:
    """Give launch attributes numbers that hold for both. The last entry of each is for nodes that have none."""
    numbers: dict[Hashable, int] = {}
    found = [
        np.array([numbers.setdefault(entry, len(numbers)) for entry in process.attribute_sets] + [-1])
        for process in sides
    ]
    return found[0], found[1]


def compare_shapes(flats: tuple[Flat, Flat], pairing: Pairing, graphs: set[int], verdicts: Verdicts) -> None:
    """Note the first difference of each graph in nodes, kernels, edges, launches and attributes."""
    first, second = flats[0].process, flats[1].process
    for at in sorted(graphs.intersection(pairing.only[0])):
        verdicts.withhold(at, PROOF_UNLIKE, "it is not in the second capture")
    tops = np.array([graph.body for graph in first.graphs], np.int64)
    for _, bodies, _, begin in pairing.reshaped:
        graph = int(np.searchsorted(tops, bodies[0], side="right")) - 1
        if graph in graphs:
            counts = [int(flat.first[body + 1] - flat.first[body]) for flat, body in zip(flats, bodies, strict=True)]
            text = f"it has {counts[0]} nodes in the first capture and {counts[1]} in the second, from node {begin} on"
            verdicts.contradict(graph, PROOF_UNLIKE, text)
    for _, one, other in pairing.bodies:
        graph = int(np.searchsorted(tops, one, side="right")) - 1
        edges = [flat.process.groups[int(flat.process.bodies[at])].edges for flat, at in zip(flats, (one, other), strict=True)]  # fmt: skip  # noqa: E501
        if graph in graphs and (len(edges[0]) != len(edges[1]) or not (edges[0] == edges[1]).all()):
            verdicts.contradict(graph, PROOF_UNLIKE, "its nodes are joined otherwise in the second capture")
    left_nodes, right_nodes, stretch = pairing.nodes(flats)
    owners = np.array([each.graph for each in pairing.stretches], np.int64)[stretch] if len(stretch) else stretch
    keep = np.isin(owners, list(graphs))
    left_nodes, right_nodes, owners = left_nodes[keep], right_nodes[keep], owners[keep]
    told: set[tuple[int, str]] = set()
    for what, differs, fatal in _node_differences(flats, (left_nodes, right_nodes), _attributes((first, second))):
        for at in np.flatnonzero(differs).tolist():
            graph = int(owners[at])
            if (graph, what) in told:
                continue
            told.add((graph, what))
            body = int(np.searchsorted(flats[0].first, left_nodes[at], side="right")) - 1
            node = int(left_nodes[at] - flats[0].first[body])
            text = f"{place_of(first, graph, body, node, what)} is another in the second capture"
            (verdicts.contradict if fatal else verdicts.withhold)(graph, PROOF_UNLIKE, text)


def _node_differences(
    flats: tuple[Flat, Flat], nodes: tuple[Index, Index], attributes: tuple[Index, Index]
) -> Iterator[tuple[str, npt.NDArray[np.bool_], bool]]:
    tables = [flat.nodes[each] for flat, each in zip(flats, nodes, strict=True)]
    yield "its type", tables[0]["type"] != tables[1]["type"], True
    yield "its reason", (tables[0]["reason"] == NONE) != (tables[1]["reason"] == NONE), True
    kernels = [flat.kernel[each] for flat, each in zip(flats, nodes, strict=True)]
    yield "its kernel", kernels[0] != kernels[1], True
    yield "the size of its parameters", tables[0]["parameter_size"] != tables[1]["parameter_size"], True
    sets = [
        side[np.minimum(table["attributes"], len(side) - 1)] for side, table in zip(attributes, tables, strict=True)
    ]
    yield "one of its launch attributes", sets[0] != sets[1], False
    both = flats[0].owns("kernel", nodes[0]) & flats[1].owns("kernel", nodes[1])
    launches = [flat.process.launches[flat.rows("kernel", each[both])] for flat, each in zip(flats, nodes, strict=True)]
    differs = np.zeros(len(both), np.bool_)
    for name in ("grid", "block"):
        differs[both] |= (launches[0][name] != launches[1][name]).any(axis=1)
    differs[both] |= launches[0]["shared_bytes"] != launches[1]["shared_bytes"]
    yield "its grid, block or shared memory", differs, True
