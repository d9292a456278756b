"""Where the addresses of proven graphs stand in the image, so that the hook can move them to another base."""

from __future__ import annotations

import numpy as np

from foundry.image import layout
from foundry.image.graphs import Bodies, Records
from foundry.image.strings import Strings
from foundry.model import NodeType, Process
from foundry.model.moving import U64, Index, device_of, number_at, parameter_bytes, words_at
from foundry.model.tables import COPY_SIZE, Table, changes

_NUMBERS = {name: number for number, (name, _) in enumerate(layout.SECTIONS)}


def moves(process: Process, bodies: Bodies, records: Records, strings: Strings) -> Table:
    """Lay out the addresses. The metadata of graphs must be among the strings already."""
    proof = process.proof
    if proof is None:
        return np.zeros(0, layout.MOVE)
    row_of = {kind: _kept(bodies, kind) for kind in (NodeType.KERNEL, NodeType.MEMSET, NodeType.MEMCPY)}
    rows = row_of[NodeType.KERNEL][proof.parameters["row"]]
    words = words_at(process.parameters, parameter_bytes(process, proof.parameters))
    parts = [_part(process, "parameter_bytes", rows, records.block_starts[rows] + proof.parameters["offset"], words)]
    rows = row_of[NodeType.MEMSET][proof.memsets]
    at = records.rows_of(NodeType.MEMSET)[rows] * layout.RECORD_SIZE
    parts.append(_part(process, "records", rows, at, process.memsets["destination"][proof.memsets]))
    rows = row_of[NodeType.MEMCPY][proof.copies["row"]]
    words = words_at(process.copies, proof.copies["row"].astype(np.int64) * COPY_SIZE + proof.copies["offset"])
    parts.append(_part(process, "copies", rows, rows * COPY_SIZE + proof.copies["offset"], words))
    places, numbers = [], []
    for graph, offset in proof.texts.tolist():
        text = process.graphs[graph].metadata
        places.append(strings.add(text) + offset)
        numbers.append(number_at(text.encode(), offset))
    at = np.array(places, np.int64)
    parts.append(_part(process, "strings", at, at, np.array(numbers, "<u8")))
    found = np.concatenate(parts)
    found = found[np.lexsort((found["offset"], found["section"]))]
    found = found[changes(found)]
    table = np.zeros(len(found), layout.MOVE)
    for name in layout.MOVE.names or ():
        table[name] = found[name]
    return table


def _kept(bodies: Bodies, kind: NodeType) -> Index:
    """Give the image's row of each row of the process, -1 for those that are not in the image."""
    mask = bodies.row_mask(kind)
    numbers = np.full(len(mask) + 1, -1, np.int64)
    numbers[:-1][mask] = np.arange(int(mask.sum()))
    return numbers


def _part(process: Process, section: str, rows: Index, places: Index, words: U64) -> Table:
    kept = rows >= 0
    part = np.zeros(int(kept.sum()), [("section", "<u4"), ("offset", "<u8"), ("device", "<u4")])
    part["section"], part["offset"] = _NUMBERS[section], places[kept]
    part["device"] = device_of(words[kept], process.devices)
    return part
