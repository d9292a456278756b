"""The values of memsets and copies."""

from __future__ import annotations

import numpy as np

from foundry.diff.flat import Index
from foundry.findings import PROOF_MOVED_OTHERWISE, PROOF_NOT_MOVED, PROOF_UNLIKE
from foundry.model.moving import U64
from foundry.model.pointers import DEVICE, UNIFIED
from foundry.model.proof import PLACE
from foundry.model.tables import COPY_SIDES, COPY_SIZE, Table, Words
from foundry.proof.verdicts import Verdicts, place_of
from foundry.proof.words import Nodes, Side

Sides = tuple[Side, Side]


def memsets(sides: Sides, nodes: Nodes, verdicts: Verdicts) -> tuple[Words, Index]:
    """Compare memsets; give the rows whose destination moves, and the graph that each is of."""
    rows = [side.flat.rows("memset", each) for side, each in zip(sides, nodes.nodes, strict=True)]
    tables = [side.flat.process.memsets[each] for side, each in zip(sides, rows, strict=True)]
    for name in tables[0].dtype.names or ():
        if name != "destination":
            for at in np.flatnonzero(tables[0][name] != tables[1][name]).tolist():
                what = f"its {name.replace('_', ' ')}"
                text = f"{_place(sides[0], nodes, at, what)} differs in the second capture"
                verdicts.contradict(int(nodes.graphs[0][at]), PROOF_UNLIKE, text)
    words = tables[0]["destination"], tables[1]["destination"]
    moving = _addresses(sides, nodes, words, "its destination", verdicts)
    order = np.argsort(rows[0][moving], kind="stable")
    return rows[0][moving][order].astype(np.uint32), nodes.graphs[0][moving][order]


def copies(sides: Sides, nodes: Nodes, verdicts: Verdicts) -> tuple[Table, Index]:
    """Compare copies; give the places that move, and the graph that each is of."""
    rows = [side.flat.rows("copy", each) for side, each in zip(sides, nodes.nodes, strict=True)]
    words = [
        np.ascontiguousarray(side.flat.process.copies.reshape(-1, COPY_SIZE)[each])
        .view("<u8")
        .reshape(-1, COPY_SIZE // 8)
        for side, each in zip(sides, rows, strict=True)
    ]
    differs = words[0] != words[1]
    found = [(np.zeros(0, PLACE), np.zeros(0, np.int64))]
    for name, side in COPY_SIDES.items():
        column = (side + 16) // 8
        kind = words[0][:, side // 8] & np.uint64(0xFFFFFFFF)
        which = (kind == DEVICE) | (kind == UNIFIED)
        part = nodes.some(which)
        sides_of = words[0][which, column].copy(), words[1][which, column].copy()
        moving = _addresses(sides, part, sides_of, f"its {name}", verdicts)
        places = np.zeros(len(moving), PLACE)
        places["row"], places["offset"] = rows[0][which][moving], side + 16
        found.append((places, part.graphs[0][moving]))
        differs[which, column] = False
    for at in np.flatnonzero(differs.any(axis=1)).tolist():
        text = f"{_place(sides[0], nodes, at, 'what it copies')} differs in the second capture"
        verdicts.contradict(int(nodes.graphs[0][at]), PROOF_UNLIKE, text)
    places, graphs = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(places, order=("row", "offset"), kind="stable")
    return places[order], graphs[order]


def _addresses(sides: Sides, nodes: Nodes, words: tuple[U64, U64], what: str, verdicts: Verdicts) -> Index:
    """Give the nodes whose address moves; the others cannot be proven."""
    spots = [side.places.spots(each, graphs) for side, each, graphs in zip(sides, words, nodes.graphs, strict=True)]
    alike = spots[0].alike(spots[1])
    for at in np.flatnonzero(~alike).tolist():
        graph = int(nodes.graphs[0][at])
        if words[0][at] == words[1][at]:
            text = f"{_place(sides[0], nodes, at, what)}: it is the same address in the second capture"
            verdicts.withhold(graph, PROOF_NOT_MOVED, text)
        else:
            text = f"{_place(sides[0], nodes, at, what)}: it is other memory in the second capture"
            verdicts.contradict(graph, PROOF_MOVED_OTHERWISE, text)
    return np.flatnonzero(alike)


def _place(side: Side, nodes: Nodes, at: int, what: str) -> str:
    flat, node = side.flat, int(nodes.nodes[0][at])
    body = int(np.searchsorted(flat.first, node, side="right")) - 1
    return place_of(flat.process, int(nodes.graphs[0][at]), body, node - int(flat.first[body]), what)
