"""Which bytes of kernel parameters are noise.

A byte is noise if it differs between two captures and belongs to no address, or if the code of its kernel does not
read it. Any other that is the same in both may be as meaningless, but nothing tells it from a constant. In a word that
looks like an address of the host on both sides, and differs in its lower half, all bytes may be noise: the same ones
are those of a page offset. Or a small number stands in front of old bytes. So there are two masks: `wide` with those
bytes, to be tried first, and `narrow` without.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.diff.evidence import looks_like_host
from foundry.model import Capture, NodeType, Process, Proof
from foundry.model.moving import WORD, parameter_bytes
from foundry.model.reads import Reads
from foundry.model.tables import padded_sizes, starts
from foundry.model.views import parameter_sizes, rows
from foundry.proof.alignment import aligned

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]
ReadsOf = Callable[[Process], Reads]
LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Noise:
    """Of a process: which bytes of Process.parameters are noise, and how many each graph has. Only proven graphs do."""

    mask: Mask
    counts: Index

    @property
    def graphs(self) -> list[int]:
        """Give the graphs that have any."""
        return [at for at, count in enumerate(self.counts.tolist()) if count]


@dataclass(frozen=True)
class Both:
    """The noise of a process by both masks."""

    wide: Noise
    narrow: Noise

    def differ(self, graph: int) -> bool:
        """Whether the masks are not the same in a graph."""
        return bool(self.wide.counts[graph] != self.narrow.counts[graph])

    def mixed(self, process: Process, narrow: Collection[int]) -> Noise:
        """Give the wide mask, with the narrow one in these graphs."""
        inside = np.isin(graph_of_bytes(process), list(narrow))
        which = np.isin(np.arange(len(self.wide.counts)), list(narrow))
        return Noise(
            np.where(inside, self.narrow.mask, self.wide.mask), np.where(which, self.narrow.counts, self.wide.counts)
        )


def find(first: Capture, second: Capture, reads_of: ReadsOf | None = None) -> dict[str, Both]:
    """Find the noise of each process of a proven capture, by role, from the second one that proved it.

    `reads_of` tells what the launches of a process read.
    """
    found = {}
    for process in first.processes:
        other = second.process(process.role)
        if process.proof is not None and other is not None:
            wide, narrow = _differing(process, other, process.proof)
            if reads_of is not None:
                unread = _unread(process, reads_of(process))
                wide, narrow = wide | unread, narrow | unread
            sides = [_of_graphs(process, process.proof, mask) for mask in (wide, narrow)]
            found[process.role] = Both(*sides)
    return found


def _of_graphs(process: Process, proof: Proof, mask: Mask) -> Noise:
    """Take what says nothing out of a mask: zeros, addresses that move, and graphs that are not proven."""
    mask &= process.parameters != 0
    mask[parameter_bytes(process, proof.parameters)[:, None] + np.arange(WORD)] = False
    graphs = graph_of_bytes(process)
    mask &= np.isin(graphs, proof.graphs)
    return Noise(mask, np.bincount(graphs[mask], minlength=len(process.graphs)).astype(np.int64))


def _unread(process: Process, reads: Reads) -> Mask:
    """Tell the bytes that no kernel reads."""
    words = padded_sizes(parameter_sizes(process)) // WORD
    within = np.arange(words.sum()) - np.repeat(starts(words)[:-1], words)
    bits = reads.at(np.repeat(np.arange(len(words)), words), within * WORD)
    unread: Mask = bits.view(np.uint8) == 0
    return unread


def _differing(process: Process, other: Process, proof: Proof) -> tuple[Mask, Mask]:
    """Tell the bytes that differ between two captures: with all of what looks like a host address, and without."""
    flats, pairing = aligned(process.role, process, other)
    left, right, stretch = pairing.nodes(flats)
    graphs = np.array([each.graph for each in pairing.stretches] or [0], np.int64)[stretch]
    wanted = np.isin(graphs, proof.graphs) & flats[0].owns("kernel", left) & flats[1].owns("kernel", right)
    nodes = left[wanted], right[wanted]
    words = -(-flats[0].nodes["parameter_size"][nodes[0]].astype(np.int64) // WORD)
    within = np.arange(words.sum()) - np.repeat(starts(words)[:-1], words)
    places = [
        np.repeat(flat.blocks[flat.rows("kernel", each)], words) + within
        for flat, each in zip(flats, nodes, strict=True)
    ]
    sides = [flat.process.parameters.view("<u8")[each] for flat, each in zip(flats, places, strict=True)]
    differs = sides[0] ^ sides[1]
    whole = looks_like_host(sides[0]) & looks_like_host(sides[1]) & (differs & LOW != 0)
    bytes_of = differs.view(np.uint8).reshape(-1, WORD) != 0
    masks = np.zeros((2, len(process.parameters)), np.bool_)
    masks[0].reshape(-1, WORD)[places[0]] = bytes_of | whole[:, None]
    masks[1].reshape(-1, WORD)[places[0]] = bytes_of
    return masks[0], masks[1]


def graph_of_bytes(process: Process) -> Index:
    """Give the graph that each byte of the parameters is of."""
    each = np.array([int(rows(group, NodeType.KERNEL).sum()) for group in process.groups] or [0], np.int64)
    bodies = np.repeat(np.arange(len(process.bodies)), each[process.bodies])
    tops = np.array([graph.body for graph in process.graphs], np.int64)
    found: Index = np.searchsorted(tops, bodies, side="right") - 1
    return np.repeat(found, padded_sizes(parameter_sizes(process)))
