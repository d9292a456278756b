"""Tells words of kernel parameters that differ: by parameter and byte, with what each side points to."""

from __future__ import annotations

import numpy as np

from foundry.diff.flat import Index
from foundry.diff.report import Change, Kind, Report, Strength
from foundry.diff.telling import Telling, spelled
from foundry.diff.words import PADDING, RELOCATED, Differing, verdict_name
from foundry.model import Kernel


def tell_words(report: Report, where: str, telling: Telling, pairs: Index, words: Differing) -> None:
    """Add what differs: real differences by graph, leftovers and moved addresses by kernel."""
    for verdict, count in enumerate(np.bincount(words.verdict).tolist()):
        if count:
            report.count_words(verdict_name(verdict), count)
    nodes = pairs[words.pair]
    real = np.flatnonzero(words.verdict == 0)
    key = telling.stretch[nodes[real]] * (words.columns + 1) + words.column[real]
    for at, count in telling.grouped(key, Kind.NODES, Strength.DIFFERENT):
        report.add([_change(telling, nodes, words, int(real[at]), count, Strength.DIFFERENT)])
    for strength, picked in (
        (Strength.NOISE, (words.verdict != 0) & (words.verdict != RELOCATED)),
        (Strength.RELOCATION, words.verdict == RELOCATED),
    ):
        rest = np.flatnonzero(picked)
        for at, count in telling.grouped(words.column[rest], Kind.NODES, strength):
            report.add([_change(telling, nodes, words, int(rest[at]), count, strength)])


def _change(telling: Telling, nodes: Index, words: Differing, at: int, count: int, strength: Strength) -> Change:
    pair = int(nodes[at])
    before, after = int(words.before[at]), int(words.after[at])
    verdict = int(words.verdict[at])
    number, offset, size, shift = _piece(telling.kernel_of(pair), int(words.offset[at]), before ^ after)
    if verdict == PADDING:
        what, told = f"bytes of no parameter (in the word at byte {words.offset[at]})", ["not read", "not read"]
    else:
        name = f"parameter {number}" if number is not None else "parameters"
        what = f"{name}, byte {offset}"
        if size == 8:
            told = [telling.pointer(side, pair, word) for side, word in enumerate((before, after))]
        else:
            told = [spelled(word >> shift & (1 << 8 * size) - 1) for word in (before, after)]
    if strength == Strength.NOISE:
        what += f": {verdict_name(verdict).replace('_', ' ')}"
    where = telling.where(pair, count)
    return Change(Kind.NODES, where, f"{telling.kernel(pair)}: {what}", told[0], told[1], strength, count)


def _piece(kernel: Kernel | None, offset: int, differs: int) -> tuple[int | None, int, int, int]:
    """Find the first parameter that differs in a word: its number, byte offset, size there, and bits before it."""
    for number, (begin, extent) in enumerate(kernel.parameters if kernel else ()):
        low, high = max(begin, offset), min(begin + extent, offset + 8)
        if low < high:
            shift, size = 8 * (low - offset), high - low
            if differs >> shift & (1 << 8 * size) - 1:
                return number, low, size, shift
    return None, offset, 8, 0
