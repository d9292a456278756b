"""What the words of graph nodes point to. A word is looked at as it stood when its graph was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from foundry.model.capture import Process
from foundry.model.constants import NONE, Arena, NodeType
from foundry.model.memory import Device, Range
from foundry.model.reads import Reads, may_be_address
from foundry.model.tables import COPY_SIDES, COPY_SIZE, Table, Words, padded_sizes, starts
from foundry.model.views import parameter_sizes, rows

POINTER = np.dtype(
    [
        ("graph", "<u4"),  # index of Process.graphs
        ("body", "<u4"),
        ("node", "<u4"),
        ("type", "<u4"),  # NodeType
        ("offset", "<u4"),  # of the word in the parameter block, the memset row or the copy
        ("target", "<u4"),  # allocation or range
        ("kind", "u1"),  # Target
        ("arena", "u1"),  # where the target is an arena's
        ("word", "<u8"),
        ("delta", "<u8"),  # word minus the start of the target
    ]
)
"""A word that lies in known memory."""

_TOGETHER = 1 << 15
"""Words that are looked at at a time, so that what is made of them stays in the cache."""

HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4
"""CUmemorytype."""


class Target(IntEnum):
    """What a word lies in."""

    ALLOCATION = 0
    DANGLING = 1
    RANGE = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class _Places:
    """Words with the place each stands at."""

    word: npt.NDArray[np.uint64]
    row: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]


def find_pointers(process: Process, ranges: Sequence[Range], reads: Reads | None = None) -> Table:
    """List every word of kernel parameters, memset destinations and copies that lies in known memory, in node order.

    `ranges` are those of the process with their host addresses, if the caller still has them. Device addresses of
    memsets and copies are listed even where nothing is known about them. With `reads`, words are left out that the
    launch does not read as an address.
    """
    parts = (
        (NodeType.KERNEL, _read(_kernel_words(process, ranges), reads)),
        (NodeType.MEMSET, _memset_words(process)),
        (NodeType.MEMCPY, _copy_words(process)),
    )
    table = _located(process, {kind: places for kind, places in parts if len(places.word)})
    bounds = np.searchsorted(table["graph"], np.arange(len(process.graphs) + 1))
    for index, graph in enumerate(process.graphs):
        part = table[bounds[index] : bounds[index + 1]]
        if len(part):
            _resolve(part, process, ranges, graph.step)
    known = (table["kind"] != Target.UNKNOWN) | (table["type"] != NodeType.KERNEL)
    return table if known.all() else table.take(np.flatnonzero(known))


def _located(process: Process, found: Mapping[NodeType, _Places]) -> Table:
    """Put the words of all kinds of nodes in the order of their nodes, without their targets."""
    columns: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in ("type", "body", "node", "offset", "word")}
    for kind, places in found.items():
        each = [np.flatnonzero(rows(group, kind)).astype(np.uint32) for group in process.groups]
        picked = [each[group] for group in process.bodies.tolist()]
        bodies = np.repeat(np.arange(len(picked), dtype=np.uint32), [len(part) for part in picked])
        columns["type"].append(np.full(len(places.word), kind, np.uint32))
        columns["body"].append(bodies[places.row])
        columns["node"].append(np.concatenate(picked)[places.row])
        columns["offset"].append(places.offset.astype(np.uint32))
        columns["word"].append(places.word)
    table = np.zeros(sum(map(len, columns["word"])), POINTER)
    if not len(table):
        return table
    joined = {name: np.concatenate(some) for name, some in columns.items()}
    order = _node_order(joined["body"], joined["node"], joined["offset"])
    for name, column in joined.items():
        table[name] = column[order]
    tops = np.array([graph.body for graph in process.graphs], np.uint32)
    table["graph"] = np.searchsorted(tops, joined["body"][order], side="right") - 1
    return table


def _node_order(body: Words, node: Words, offset: Words) -> npt.NDArray[np.int64]:
    """Give the order of (body, node, offset). Words of a kind are sorted already, which helps a stable sort of one key.

    Bodies, nodes and offsets stay below 2^20, 2^24 and 2^17.
    """
    key = body.astype(np.uint64) << np.uint64(41)
    key |= node.astype(np.uint64) << np.uint64(17)
    key |= offset
    return np.argsort(key, kind="stable")


def in_arenas(words: npt.NDArray[np.uint64], devices: Sequence[Device]) -> npt.NDArray[np.bool_]:
    """Tell which words lie in an arena of one of the devices."""
    inside = np.zeros(len(words), np.bool_)
    for at in range(0, len(words), _TOGETHER):
        some, found = words[at : at + _TOGETHER], inside[at : at + _TOGETHER]
        for device in devices:
            found |= (some - np.uint64(device.base)) < np.uint64(device.arena_size * len(Arena))
    return inside


def _kernel_words(process: Process, ranges: Sequence[Range]) -> _Places:
    sizes = parameter_sizes(process)
    firsts = starts(padded_sizes(sizes)) // 8
    words = process.parameters.view("<u8")
    mask = in_arenas(words, process.devices)
    spans = [(item.address, item.address + item.size) for item in ranges if item.address and item.size]
    if spans:
        lowest, highest = min(low for low, _ in spans), max(high for _, high in spans)
        near = np.flatnonzero((words >= np.uint64(lowest)) & (words < np.uint64(highest)))
        edges = np.array(_merged(spans), np.uint64).reshape(-1)
        mask[near[np.searchsorted(edges, words[near], side="right") % 2 == 1]] = True
    at = np.flatnonzero(mask)
    row = np.repeat(np.arange(len(sizes)), np.diff(np.searchsorted(at, firsts)))
    offset = (at - firsts[row]) * 8
    whole = offset + 8 <= sizes[row]
    if not whole.all():
        at, row, offset = at[whole], row[whole], offset[whole]
    return _Places(words[at], row, offset)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that touch or overlap, so that all edges ascend strictly."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _read(places: _Places, reads: Reads | None) -> _Places:
    if reads is None:
        return places
    kept = may_be_address(reads.at(places.row, places.offset))
    return _Places(places.word[kept], places.row[kept], places.offset[kept])


def _memset_words(process: Process) -> _Places:
    count = len(process.memsets)
    return _Places(process.memsets["destination"], np.arange(count), np.zeros(count, np.int64))


def _copy_words(process: Process) -> _Places:
    copies = process.copies.reshape(-1, COPY_SIZE)
    words, numbers, offsets = [], [], []
    for side in COPY_SIDES.values():
        kind = copies[:, side].astype(np.int64)
        row = np.flatnonzero((kind == DEVICE) | (kind == UNIFIED))
        words.append(np.ascontiguousarray(copies[row, side + 16 : side + 24]).view("<u8").reshape(-1))
        numbers.append(row)
        offsets.append(np.full(len(row), side + 16, np.int64))
    return _Places(np.concatenate(words), np.concatenate(numbers), np.concatenate(offsets))


def live_allocations(process: Process, step: int) -> npt.NDArray[np.int64]:
    """List the allocations that stood at that step, by address."""
    table = process.allocations
    alive = np.flatnonzero((table["born"] < step) & ((table["died"] == NONE) | (table["died"] > step)))
    return alive[np.argsort(table["address"][alive], kind="stable")]


def _resolve(part: Table, process: Process, ranges: Sequence[Range], step: int) -> None:
    """Fill in the targets of one graph's words."""
    words = part["word"]
    part["kind"], part["target"] = Target.UNKNOWN, NONE
    for device in process.devices:
        for arena in Arena:
            low = np.uint64(device.base + arena * device.arena_size)
            inside = (words - low) < np.uint64(device.arena_size)
            part["kind"][inside], part["arena"][inside] = Target.DANGLING, arena
    live = live_allocations(process, step)
    if len(live):
        address, taken = process.allocations["address"][live], process.allocations["taken"][live]
        near = np.maximum(np.searchsorted(address, words, side="right") - 1, 0)
        delta = words - address[near]
        hit = (part["kind"] == Target.DANGLING) & (delta < taken[near])
        part["kind"][hit], part["target"][hit], part["delta"][hit] = Target.ALLOCATION, live[near[hit]], delta[hit]
    open_words = np.flatnonzero(part["kind"] == Target.UNKNOWN)
    if not len(open_words):
        return
    for index, item in enumerate(ranges):
        if item.address and item.born <= step < item.died:
            delta = words[open_words] - np.uint64(item.address)
            inside = delta < np.uint64(max(item.size, 1))
            hit = open_words[inside]
            part["kind"][hit], part["target"][hit], part["delta"][hit] = Target.RANGE, index, delta[inside]
