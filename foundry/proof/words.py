"""The words of kernel parameters: constant, moving with their memory, noise, or none of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from foundry.diff.flat import Flat, Index
from foundry.diff.places import Places
from foundry.findings import PROOF_MOVED_OTHERWISE, PROOF_NOISE_KNOWN, PROOF_NOT_MOVED
from foundry.model import Process, Range
from foundry.model.moving import U64, WORD, words_at
from foundry.model.proof import PLACE
from foundry.model.reads import Reads, may_be_address
from foundry.model.tables import Table, padded_sizes, starts
from foundry.model.views import parameter_sizes
from foundry.proof.verdicts import Verdicts, place_of

Mask = npt.NDArray[np.bool_]
CHUNK_WORDS = 1 << 19
SHIFTS = (4, -4, 2, -2, 6, -6, 1, -1, 3, -3, 5, -5, 7, -7)
"""Where a packed address may begin besides the word that differs: the likeliest first."""
PACKED = (4, -4)
MOST_TOLD = 1000
"""How many words of one finding are worded; of the rest a graph is told none anew."""


class KnownMemory:
    """Memory that the hook did not place, with all its addresses, as it stood when graphs were made."""

    def __init__(self, process: Process, ranges: Sequence[Range]) -> None:
        self._ranges = [item for item in ranges if item.address and item.size]
        self._steps = np.array([graph.step for graph in process.graphs] or [0], np.int64)

    def holds(self, words: U64, graphs: Index) -> Mask:
        """Tell which words lie in it, each as its graph found it."""
        found = np.zeros(len(words), np.bool_)
        steps = self._steps[graphs]
        for item in self._ranges:
            inside = (words - np.uint64(item.address)) < np.uint64(item.size)
            found |= inside & (item.born <= steps) & (steps < item.died)
        return found


@dataclass
class Side:
    """One of the two captures of a process."""

    flat: Flat
    places: Places
    known: KnownMemory
    reads: Reads
    starts: Index = field(init=False)

    def __post_init__(self) -> None:
        self.starts = starts(padded_sizes(parameter_sizes(self.flat.process)))


@dataclass
class Nodes:
    """Nodes that belong together: their index on both sides, and the graphs that they are of."""

    nodes: tuple[Index, Index]
    graphs: tuple[Index, Index]

    def some(self, mask: Mask) -> Nodes:
        """Give only those."""
        return Nodes(
            (self.nodes[0][mask], self.nodes[1][mask]),
            (self.graphs[0][mask], self.graphs[1][mask]),
        )


@dataclass
class Windows:
    """Words at any alignment: which pair of nodes, the byte in the block, and the values of both sides."""

    pair: Index
    offset: Index
    before: U64
    after: U64


class ParameterWords:
    """Goes through all words of the kernel nodes of two captures."""

    def __init__(self, sides: tuple[Side, Side], kernels: Nodes, verdicts: Verdicts) -> None:
        self._sides = sides
        self._kernels = kernels
        self._verdicts = verdicts
        self._rows = [side.flat.rows("kernel", each) for side, each in zip(sides, kernels.nodes, strict=True)]
        self._sizes = sides[0].flat.nodes["parameter_size"][kernels.nodes[0]].astype(np.int64)
        self._moved: list[tuple[Index, Index]] = []
        self.noise = np.zeros(len(sides[0].flat.process.graphs), np.int64)
        """Words of each graph that differ and are noise, or not read."""

    def run(self) -> tuple[Table, Index]:
        """Classify all words; give the places of those that move, and the graph that each is of."""
        words = -(-self._sizes // WORD)
        bounds = starts(words)
        begin = 0
        while begin < len(words):
            end = max(int(np.searchsorted(bounds, bounds[begin] + CHUNK_WORDS, side="right")) - 1, begin + 1)
            pair = np.repeat(np.arange(begin, end), words[begin:end])
            within = np.arange(len(pair)) - np.repeat(bounds[begin:end] - bounds[begin], words[begin:end])
            self._aligned(pair, within * WORD)
            begin = end
        return self._places()

    def _windows(self, pair: Index, offset: Index) -> Windows:
        """Read both sides; a word that passes the end of the block is read with its filling."""
        values = [
            words_at(side.flat.process.parameters, side.starts[rows[pair]] + offset)
            for side, rows in zip(self._sides, self._rows, strict=True)
        ]
        return Windows(pair, offset, values[0], values[1])

    def _read(self, pair: Index, offset: Index) -> U64:
        """Give the bits of windows that any of both launches can read."""
        return np.bitwise_or(
            *(side.reads.at(rows[pair], offset) for side, rows in zip(self._sides, self._rows, strict=True))
        )

    def _graphs(self, windows: Windows) -> tuple[Index, Index]:
        return self._kernels.graphs[0][windows.pair], self._kernels.graphs[1][windows.pair]

    def _judge(self, windows: Windows) -> tuple[Mask, Mask, Mask]:
        """Tell which windows lie in the same place of their memory, and which in a live allocation on each side."""
        count = len(windows.pair)
        alike, live = np.zeros(count, np.bool_), [np.zeros(count, np.bool_) for _ in self._sides]
        near = [
            side.places.placed(words) for side, words in zip(self._sides, (windows.before, windows.after), strict=True)
        ]
        at = np.flatnonzero(near[0] | near[1])
        if len(at):
            spots = [
                side.places.spots(words[at], graphs[at])
                for side, words, graphs in zip(
                    self._sides, (windows.before, windows.after), self._graphs(windows), strict=True
                )
            ]
            alike[at] = spots[0].alike(spots[1])
            for found, spot in zip(live, spots, strict=True):
                found[at] = spot.inside & (spot.ordinal >= 0)
        return alike, live[0], live[1]

    def _aligned(self, pair: Index, offset: Index) -> None:
        windows = self._windows(pair, offset)
        differs = windows.before != windows.after
        near = self._sides[0].places.placed(windows.before)
        keep = np.flatnonzero(differs | near)
        windows = Windows(pair[keep], offset[keep], windows.before[keep], windows.after[keep])
        differs = differs[keep]
        whole = windows.offset + WORD <= self._sizes[windows.pair]
        read = self._read(windows.pair, windows.offset)
        address = may_be_address(read)
        alike, live, live_after = self._judge(windows)
        still = ~differs & live & whole & address
        self._tell(windows, still, PROOF_NOT_MOVED, "it names memory, and is the same in the second capture")
        moving = differs & alike & whole
        self._moved.append((windows.pair[moving], windows.offset[moving]))
        matters = (windows.before ^ windows.after) & read != 0
        unread = windows.pair[differs & ~moving & ~matters]
        np.add.at(self.noise, self._kernels.graphs[0][unread], 1)
        rest = np.flatnonzero(matters & ~moving)
        rest = rest[~self._packed(windows, rest)]
        left = Windows(windows.pair[rest], windows.offset[rest], windows.before[rest], windows.after[rest])
        otherwise = (live[rest] | live_after[rest]) & whole[rest] & address[rest]
        self._tell(left, otherwise, PROOF_MOVED_OTHERWISE, "it names memory, and other or none in the second capture")
        known = self._known(left) & ~otherwise
        self._tell(left, known, PROOF_NOISE_KNOWN, "it differs, and lies in memory that the driver knows")
        noise = left.pair[~otherwise & ~known]
        np.add.at(self.noise, self._kernels.graphs[0][noise], 1)

    def _shifted(self, windows: Windows, at: Index, shift: int) -> tuple[Windows, Index]:
        """Give the windows that far from these words, where they lie whole in the block, with the word of each."""
        offset = windows.offset[at] + shift
        inside = (offset >= 0) & (offset + WORD <= self._sizes[windows.pair[at]])
        at, offset = at[inside], offset[inside]
        return self._windows(windows.pair[at], offset), at

    def _packed(self, windows: Windows, rest: Index) -> Mask:
        """Look for addresses that are not at a multiple of 8; tell which words are explained by one."""
        explained = np.zeros(len(windows.pair), np.bool_)
        for shift in SHIFTS:
            moved, at = self._shifted(windows, rest[~explained[rest]], shift)
            alike, live, _ = self._judge(moved)
            good = alike & live
            explained[at[good]] = True
            self._moved.append((moved.pair[good], moved.offset[good]))
        for shift in PACKED:
            moved, at = self._shifted(windows, rest[~explained[rest]], shift)
            alike, live, live_after = self._judge(moved)
            bad = live & live_after & ~alike & may_be_address(self._read(moved.pair, moved.offset))
            explained[at[bad]] = True
            self._tell(moved, bad, PROOF_MOVED_OTHERWISE, "it names memory, and other memory in the second capture")
        found: Mask = explained[rest]
        return found

    def _known(self, left: Windows) -> Mask:
        found = np.zeros(len(left.pair), np.bool_)
        every = np.arange(len(left.pair))
        for shift in (0, *PACKED):
            moved, at = self._shifted(left, every, shift)
            asked = (moved.before != moved.after) & may_be_address(self._read(moved.pair, moved.offset))
            for side, words, graphs in zip(self._sides, (moved.before, moved.after), self._graphs(moved), strict=True):
                found[at] |= side.known.holds(words, graphs) & asked
        return found

    def _tell(self, windows: Windows, which: Mask, code: str, text: str) -> None:
        flat = self._sides[0].flat
        note = self._verdicts.withhold if code == PROOF_NOT_MOVED else self._verdicts.contradict
        for at in np.flatnonzero(which)[:MOST_TOLD].tolist():
            pair = int(windows.pair[at])
            node, graph = int(self._kernels.nodes[0][pair]), int(self._kernels.graphs[0][pair])
            body = int(np.searchsorted(flat.first, node, side="right")) - 1
            what = f"parameter byte {int(windows.offset[at])}: {text}"
            note(graph, code, place_of(flat.process, graph, body, node - int(flat.first[body]), what))
        for graph in (
            np.unique(self._kernels.graphs[0][windows.pair[which]])[:].tolist() if which.sum() > MOST_TOLD else ()
        ):
            note(int(graph), code, text)

    def _places(self) -> tuple[Table, Index]:
        pair = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in self._moved)])
        offset = np.concatenate([np.zeros(0, np.int64), *(each for _, each in self._moved)])
        places = np.zeros(len(pair), PLACE)
        places["row"], places["offset"] = self._rows[0][pair], offset
        places, first = np.unique(places, return_index=True)
        graphs = self._kernels.graphs[0][pair[first]]
        key = places["row"].astype(np.int64) << 32 | places["offset"]
        for at in np.flatnonzero(np.diff(key) < WORD).tolist():
            text = f"two addresses overlap in a block of parameters, at byte {int(places['offset'][at])}"
            self._verdicts.withhold(int(graphs[at]), PROOF_NOT_MOVED, text)
        return places, graphs
