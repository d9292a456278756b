"""Words of kernel parameters that differ, and how each is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foundry.diff.alike import OPEN, SAME, Launches, judge_alike
from foundry.diff.evidence import Columns, Words
from foundry.diff.flat import Flat, Index
from foundry.diff.noise import Leftover, judge
from foundry.diff.places import Places
from foundry.model import Kernel
from foundry.model.reads import Reads
from foundry.model.tables import starts

U64 = npt.NDArray[np.uint64]
CHUNK_WORDS = 1 << 16
"""Words that are looked at at a time."""
MOST_WORDS = 1 << 23
"""Of all launches of a kernel; those of a kernel with more words are judged word by word only."""
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

RELOCATED, PADDING, UNREAD = 100, 101, 102
"""Verdicts besides those of `Leftover`: the word moved with its memory; only bytes of no parameter differ; only bytes
that neither launch can read."""
Source = Callable[[Index], Reads]
"""Tells what launches read, given by their rows."""


@dataclass
class Layouts:
    """The words of all kernels' blocks, each a column: kernels are known by their numbers in both captures."""

    numbers: Index
    first: Index
    mask: U64
    parameter: Index
    parameter_bytes: Index

    def of(self, kernels: Index) -> Index:
        """Give the first column of each kernel, by its number."""
        found: Index = self.first[np.searchsorted(self.numbers, kernels)]
        return found


@dataclass
class Differing:
    """Words that differ, without bytes that lie in no parameter: pair of nodes, byte offset, both values, verdict.

    `column` numbers the places of kernels, of which there are `columns`.
    """

    pair: Index
    column: Index
    columns: int
    offset: Index
    before: U64
    after: U64
    verdict: npt.NDArray[np.uint8]


def compare_words(
    flats: tuple[Flat, Flat],
    places: tuple[Places, Places],
    nodes: tuple[Index, Index],
    graphs: tuple[Index, Index],
    reads: tuple[Source, Source] | None = None,
) -> Differing:
    """Compare the blocks of kernel nodes of the same kernels and sizes, given with the graphs that they are of."""
    layouts = _layouts(flats, nodes)
    sizes = -(-flats[0].nodes["parameter_size"][nodes[0]].astype(np.int64) // 8)
    blocks = [flat.blocks[flat.rows("kernel", each)] for flat, each in zip(flats, nodes, strict=True)]
    words = [flat.process.parameters.view("<u8") for flat in flats]
    columns = layouts.of(flats[0].kernel[nodes[0]])
    pointing = np.zeros(len(layouts.mask), np.bool_)
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    bounds = starts(sizes)
    begin = 0
    while begin < len(sizes):
        end = max(int(np.searchsorted(bounds, bounds[begin] + CHUNK_WORDS, side="right")) - 1, begin + 1)
        part = slice(begin, end)
        pair = np.repeat(np.arange(begin, end), sizes[part])
        within = np.arange(len(pair)) - np.repeat(bounds[part] - bounds[begin], sizes[part])
        column = columns[pair] + within
        left, right = (side[block[pair] + within] for side, block in zip(words, blocks, strict=True))
        for place, side in zip(places, (left, right), strict=True):
            pointing[column[place.known(side)]] = True
        at = np.flatnonzero(left != right)
        mask = layouts.mask[column[at]]
        parts.append(
            (
                *(pair[at].astype(np.int32), within[at].astype(np.int32), column[at].astype(np.int32)),
                *(left[at] & mask, right[at] & mask),
            )
        )
        begin = end
    if not parts:
        parts = [(*3 * [np.zeros(0, np.int32)], *2 * [np.zeros(0, np.uint64)])]
    pair, within, column, left, right = (np.concatenate(each) for each in zip(*parts, strict=True))
    parts.clear()
    verdict = np.zeros(len(pair), np.uint8)
    verdict[left == right] = PADDING
    inside = np.flatnonzero((verdict == 0) & places[0].placed(left) & places[1].placed(right))
    spots = [
        place.spots(side[inside], graph[pair[inside]])
        for place, side, graph in zip(places, (left, right), graphs, strict=True)
    ]
    verdict[inside[spots[0].alike(spots[1])]] = RELOCATED
    rest = np.flatnonzero(verdict == 0)
    bits = _bits(
        [flat.rows("kernel", each) for flat, each in zip(flats, nodes, strict=True)], pair, within, rest, reads
    )
    # What is not read still tells where the host's memory lies.
    read = (left[rest] ^ right[rest]) & bits != 0
    left[rest[read]] &= bits[read]
    right[rest[read]] &= bits[read]
    del bits
    verdict[rest] = judge(
        Words(
            *(left[rest], right[rest], column[rest], bounds[pair[rest]] + within[rest], pair[rest]),
            known=places[0].known(left[rest]) | places[1].known(right[rest]),
        ),
        Columns(pointing, layouts.parameter_bytes, layouts.parameter),
    )
    verdict[rest[~read]] = UNREAD
    found = Differing(pair, column, len(layouts.mask), within * 8, left, right, verdict)
    if (verdict == Leftover.NONE).any():
        _judge_alike(_Blocks(words, blocks, sizes, columns, _shapes(flats, nodes), graphs[0]), places, layouts, found)
    return found


def _bits(rows: Sequence[Index], pair: Index, within: Index, at: Index, reads: tuple[Source, Source] | None) -> U64:
    """Give the bits of some words that any of both launches can read."""
    if reads is None or not len(at):
        return np.full(len(at), ALL)
    bits = np.zeros(len(at), np.uint64)
    for side, source in zip(rows, reads, strict=True):
        asked = np.zeros(len(side), np.bool_)
        asked[pair[at]] = True
        known = source(np.sort(side[asked]))
        for begin in range(0, len(at), CHUNK_WORDS):
            some = at[begin : begin + CHUNK_WORDS]
            bits[begin : begin + CHUNK_WORDS] |= known.at(side[pair[some]], within[some].astype(np.int64) * 8)
    return bits


@dataclass
class _Blocks:
    """The blocks of all pairs: the words of both sides and where each block starts, its size, column and launch."""

    words: Sequence[U64]
    starts: Sequence[Index]
    sizes: Index
    columns: Index
    shapes: U64
    graphs: Index


def _judge_alike(blocks: _Blocks, places: tuple[Places, Places], layouts: Layouts, found: Differing) -> None:
    """Judge words that are left by all launches of their kernel."""
    kinds = np.stack([blocks.columns, blocks.sizes])
    wanted = np.unique(kinds[:, found.pair[found.verdict == Leftover.NONE]], axis=1)
    for column, size in wanted.T.tolist():
        pairs = np.flatnonzero((blocks.columns == column) & (blocks.sizes == size))
        if len(pairs) * size > MOST_WORDS:
            continue
        rows = np.full(len(blocks.sizes), -1)
        rows[pairs] = np.arange(len(pairs))
        at = np.flatnonzero(rows[found.pair] >= 0)
        row, word = rows[found.pair[at]], found.offset[at] // 8
        verdict = np.full((len(pairs), size), SAME, np.uint8)
        verdict[row, word] = np.where(found.verdict[at] == Leftover.NONE, OPEN, found.verdict[at])
        before, after = (
            side[start[pairs][:, None] + np.arange(size)] & layouts.mask[column : column + size]
            for side, start in zip(blocks.words, blocks.starts, strict=True)
        )
        pointing = [
            place.known(side.reshape(-1)).reshape(side.shape)
            for place, side in zip(places, (before, after), strict=True)
        ]
        launches = Launches(
            *(before, after, (pointing[0], pointing[1]), verdict),
            *(layouts.parameter[column : column + size], layouts.parameter_bytes[column : column + size]),
            *(blocks.graphs[pairs], blocks.shapes[pairs]),
        )
        found.verdict[at] |= judge_alike(launches)[row, word]


def _shapes(flats: tuple[Flat, Flat], nodes: tuple[Index, Index]) -> U64:
    """Give pairs of nodes with the same grids, blocks and shared memory the same number."""
    tables = [flat.process.launches[flat.rows("kernel", each)] for flat, each in zip(flats, nodes, strict=True)]
    both = np.stack([np.ascontiguousarray(table).view(f"V{table.dtype.itemsize}") for table in tables], axis=1)
    flat = np.ascontiguousarray(both).view(f"V{2 * tables[0].dtype.itemsize}").reshape(-1)
    return np.unique(flat, return_inverse=True)[1].reshape(-1).astype(np.uint64)


def verdict_name(verdict: int) -> str:
    """Name a verdict for documents."""
    return {RELOCATED: "relocated", PADDING: "padding", UNREAD: "unread", Leftover.NONE: "different"}.get(
        verdict, ""
    ) or Leftover(verdict).name.lower()


def _layouts(flats: tuple[Flat, Flat], nodes: tuple[Index, Index]) -> Layouts:
    numbers, first, which = np.unique(flats[0].kernel[nodes[0]], return_index=True, return_inverse=True)
    lengths = np.zeros(len(numbers), np.int64)
    np.maximum.at(lengths, which, -(-flats[0].nodes["parameter_size"][nodes[0]].astype(np.int64) // 8))
    masks, parameters, sizes = [], [], []
    seen = 0
    for at, length in zip(first.tolist(), lengths.tolist(), strict=True):
        kernels = [
            flat.process.kernels[int(flat.nodes["kernel"][side[at]])] for flat, side in zip(flats, nodes, strict=True)
        ]
        mask, parameter, size = _columns(kernels, length)
        masks.append(mask)
        parameters.append(parameter + seen)
        sizes.append(size)
        seen += int(parameter.max(initial=0)) + 1
    return Layouts(
        numbers,
        starts(lengths)[:-1],
        np.concatenate([np.zeros(0, "<u8"), *masks]),
        np.concatenate([np.zeros(0, np.int64), *parameters]),
        np.concatenate([np.zeros(0, np.int64), *sizes]),
    )


def _columns(kernels: Sequence[Kernel], length: int) -> tuple[U64, Index, Index]:
    """Give, for each word, the bytes that lie in a parameter of any of the kernels, and the parameter it is of."""
    covered = np.zeros(length * 8, np.uint8)
    parameter, size = np.zeros(length, np.int64), np.zeros(length, np.int64)
    for kernel in kernels:
        if not kernel.parameters:
            covered[:] = 0xFF  # its layout is not known: each byte may be one of a parameter
        for number, (offset, extent) in enumerate(kernel.parameters):
            covered[offset : offset + extent] = 0xFF
            span = slice(offset // 8, -(-(offset + extent) // 8))
            parameter[span], size[span] = number + 1, extent
    return covered.view("<u8"), parameter, size
