"""What each launch of a kernel reads: its code is followed once for all launches that decide its branches alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foundry.machine.architectures import ARCHITECTURES, Architecture
from foundry.machine.flow import Flow
from foundry.machine.values import Launch, Value
from foundry.model import Device
from foundry.model.pointers import in_arenas
from foundry.model.tables import Bytes, Table

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MOST_FOLLOWED = 256
"""Ways of one kernel; launches that would take others read what the kernel reads at all."""
MOST_INSTRUCTIONS = 20_000
SHAPE = "shape"
BLOCK, GRID = 0x00, 0x0C
"""Where the sizes of block and grid stand in bank 0."""
THREAD, GROUP = 0x21, 0x25
"""Numbers of the special registers for the place of a thread in its block, and of the block in the grid."""


@dataclass(frozen=True)
class KernelReads:
    """What a kernel reads of its parameters: `mask` whatever they are, and of one launch what `flow` reaches.

    `mask` is None for one that may read everything. Without code, there is nothing to follow. `calls_away` tells that
    its indirect calls can only be those of functions of the driver.
    """

    size: int
    mask: Mask | None
    architecture: Architecture = ARCHITECTURES[90]
    code: bytes = b""
    calls_away: bool = False

    @cached_property
    def _flow(self) -> Flow | None:
        if not self.code or len(self.code) > MOST_INSTRUCTIONS * 16:
            return None
        flow = Flow(self.code, self.architecture, calls_away=self.calls_away)
        return flow if flow.followed else None

    def of_launches(
        self, parameters: Bytes, blocks: Index, shapes: Table, devices: Sequence[Device]
    ) -> Iterator[tuple[Index, Mask]]:
        """Give groups of launches, by their places in `blocks`, each with what these read."""
        left = np.arange(len(blocks))
        if self._flow is not None:
            for _ in range(MOST_FOLLOWED):
                if not len(left):
                    return
                some, mask = self._follow(parameters, blocks[left], shapes[left], devices)
                if mask is None:
                    break
                yield left[some], mask
                left = np.delete(left, some)
        if self.mask is not None and len(left):
            yield left, self.mask

    def _follow(
        self, parameters: Bytes, blocks: Index, shapes: Table, devices: Sequence[Device]
    ) -> tuple[Index, Mask | None]:
        """Follow the first launch; give all launches that it stands for, and what they read, None for everything."""
        assert self._flow is not None
        block, shape = parameters[blocks[0] : blocks[0] + -(-self.size // 8) * 8], shapes[0]
        still = _still(block.view("<u4")[None, :], devices)[0]
        numbers, base = block.view("<u4").tolist(), self.architecture.base
        sizes = [*shape["block"].tolist(), *shape["grid"].tolist()]

        def word(offset: int) -> Value | None:
            at = offset - base
            if at < 0:
                place = offset // 4
                return (sizes[place], sizes[place], frozenset((SHAPE,))) if offset % 4 == 0 and place < 6 else None
            if at % 4 or at + 4 > self.size or not still[at // 4]:
                return None
            return numbers[at // 4], numbers[at // 4], frozenset((at // 4,))

        special: dict[int, Value] = {
            first + axis: (0, max(size - 1, 0), frozenset((SHAPE,)))
            for first, part in ((THREAD, sizes[:3]), (GROUP, sizes[3:]))
            for axis, size in enumerate(part)
        }
        reached = self._flow.follow(Launch(word, special))
        if reached is None:
            return np.zeros(0, np.int64), None
        same = np.ones(len(blocks), np.bool_)
        if SHAPE in reached.sources:
            for name in ("grid", "block"):
                same &= (shapes[name] == shape[name]).all(axis=1)
        words, count = parameters.view("<u4"), len(numbers)
        for at in sorted(source for source in reached.sources if isinstance(source, int)):
            same &= words[blocks // 4 + at] == numbers[at]
            near = np.arange(max(at - 1, 0), min(at + 2, count))
            same &= _still(words[blocks[:, None] // 4 + near], devices)[:, min(at, 1)]
        mask = np.zeros(self.size, np.bool_)
        for begin, end in reached.spans:
            if end > base:
                mask[max(begin - base, 0) : end - base] = True
        return np.flatnonzero(same), mask


def _still(words: npt.NDArray[np.uint32], devices: Sequence[Device]) -> Mask:
    """Tell which 4-byte words of blocks are no part of an address in an arena, which another restore has elsewhere."""
    found = np.ones(words.shape, np.bool_)
    if words.shape[1] < 2:
        return found
    pairs = words[:, :-1].astype(np.uint64) | words[:, 1:].astype(np.uint64) << np.uint64(32)
    inside = in_arenas(pairs.reshape(-1), devices).reshape(pairs.shape)
    found[:, :-1] &= ~inside
    found[:, 1:] &= ~inside
    return found
