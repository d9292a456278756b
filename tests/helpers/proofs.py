"""Proofs for captures made by hand: every word of a restorable graph that lies in a device's range moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foundry.model import NONE, NodeType, Process, Proof
from foundry.model.moving import device_of
from foundry.model.proof import PLACE
from foundry.model.restorable import graph_ends
from foundry.model.tables import COPY_SIDES, COPY_SIZE, padded_sizes, starts
from foundry.model.views import parameter_sizes, rows

NOTHING_PROVEN = Proof(
    np.zeros(0, np.uint32), np.zeros(0, PLACE), np.zeros(0, np.uint32), np.zeros(0, PLACE), np.zeros(0, PLACE), 0
)


def rows_of_graphs(process: Process, graphs: Sequence[int], owned: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Tell which rows belong to these graphs; `owned` is how many each body owns."""
    ends = graph_ends(process)
    bodies = np.zeros(len(process.bodies), np.bool_)
    for at in graphs:
        bodies[process.graphs[at].body : ends[at]] = True
    return np.repeat(bodies, owned)


def proven(process: Process) -> Process:
    """Give the process with a proof of all its graphs; the first one's metadata names memory."""
    graphs = [at for at, graph in enumerate(process.graphs) if graph.restorable]
    texts = []
    if graphs and process.devices and process.devices[0].base:
        text = f'{{"größe": [1, {process.devices[0].base + 512}]}}'
        changed = list(process.graphs)
        changed[graphs[0]] = replace(changed[graphs[0]], metadata=text)
        process = replace(process, graphs=tuple(changed))
        texts.append((graphs[0], text.encode().index(str(process.devices[0].base + 512).encode())))
    owned = {
        kind: np.array([int(rows(group, kind).sum()) for group in process.groups] or [0])[process.bodies]
        for kind in (NodeType.KERNEL, NodeType.MEMSET, NodeType.MEMCPY)
    }
    of_graphs = {kind: rows_of_graphs(process, graphs, counts) for kind, counts in owned.items()}
    sizes = parameter_sizes(process).astype(np.int64)
    first = starts(padded_sizes(sizes))
    at = np.flatnonzero(device_of(process.parameters.view("<u8"), process.devices) != NONE) * 8
    row = np.searchsorted(first, at, side="right") - 1
    whole = (at - first[row] + 8 <= sizes[row]) & of_graphs[NodeType.KERNEL][row]
    parameters = np.zeros(int(whole.sum()), PLACE)
    parameters["row"], parameters["offset"] = row[whole], (at - first[row])[whole]
    memsets = np.flatnonzero(
        (device_of(process.memsets["destination"], process.devices) != NONE) & of_graphs[NodeType.MEMSET]
    )
    copies = []
    words = process.copies.reshape(-1, COPY_SIZE).view("<u8").reshape(-1, COPY_SIZE // 8)
    for copy in np.flatnonzero(of_graphs[NodeType.MEMCPY]).tolist():
        for side in COPY_SIDES.values():
            if device_of(words[copy, (side + 16) // 8 : (side + 24) // 8], process.devices)[0] != NONE:
                copies.append((copy, side + 16))
    proof = Proof(
        np.array(graphs, np.uint32),
        parameters,
        memsets.astype(np.uint32),
        np.array(copies, PLACE),
        np.array(texts, PLACE),
        noise=3,
    )
    return replace(process, proof=proof)
