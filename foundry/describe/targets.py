"""What the words of one graph point to, one word at a time, as it stood when the graph was made.

The judgement is that of `foundry.model.pointers`, which does it for all graphs at once; a test holds both together.
"""

from __future__ import annotations

from bisect import bisect_right

from foundry.describe import names
from foundry.describe.documents import Target
from foundry.model import Arena, Process
from foundry.model.pointers import live_allocations

HOST_LIKE = ((0x550000000000, 0x570000000000), (0x7E0000000000, 0x800000000000))
"""Where Linux puts the heap of a program, and its libraries and stacks, on x86-64."""

CONSTANT: Target = {"kind": "constant", "text": "constant"}
NOISE: Target = {"kind": "noise", "text": "looks like a host address: noise"}
UNREAD: Target = {"kind": "unread", "text": "not read"}
UNKNOWN: Target = {"kind": "unknown", "text": "memory that was not seen to be allocated"}


class Targets:
    """Looks words up in the memory of a process as it stood at a step (`Graph.step`)."""

    def __init__(self, process: Process, step: int) -> None:
        table = process.allocations
        live = live_allocations(process, step)
        self._rows: list[int] = live.tolist()
        self._starts: list[int] = table["address"][live].tolist()
        self._sizes: list[int] = table["size"][live].tolist()
        self._taken: list[int] = table["taken"][live].tolist()
        self._ordinals: list[int] = table["ordinal"][live].tolist()
        self._devices = [(device.ordinal, device.base, device.arena_size) for device in process.devices]
        self._ranges = [item for item in process.ranges if item.address and item.born <= step < item.died]

    def of(self, word: int, *, pointer: bool = False) -> Target:
        """Tell what a word points to. `pointer`: it is known to be an address, so it is neither noise nor constant."""
        for ordinal, base, size in self._devices:
            if size and 0 <= word - base < size * len(Arena):
                return self._in_arena(word, ordinal, names.ARENAS[(word - base) // size])
        for item in self._ranges:
            if 0 <= word - item.address < max(item.size, 1):
                kind = names.name(names.RANGES, item.kind)
                offset = word - item.address
                title = f"{kind} `{item.name}`" if item.name else f"{kind} memory"
                return {
                    "kind": "range",
                    "text": f"{title}{_plus(offset)}",
                    "range": kind,
                    "name": item.name,
                    "offset": offset,
                    "size": item.size,
                }
        if pointer:
            return UNKNOWN
        return NOISE if any(low <= word < high for low, high in HOST_LIKE) else CONSTANT

    def _in_arena(self, word: int, device: int, arena: str) -> Target:
        at = bisect_right(self._starts, word) - 1
        if at >= 0 and word - self._starts[at] < self._taken[at]:
            offset, ordinal = word - self._starts[at], self._ordinals[at]
            return {
                "kind": "allocation",
                "text": f"{arena} allocation {ordinal}{_plus(offset)}",
                "device": device,
                "arena": arena,
                "allocation": self._rows[at],
                "ordinal": ordinal,
                "offset": offset,
                "size": self._sizes[at],
            }
        text = f"dangling in the {arena} arena"
        return {"kind": "dangling", "text": text, "device": device, "arena": arena}


def _plus(offset: int) -> str:
    return f" + {offset:#x}" if offset else ""
