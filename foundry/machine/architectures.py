"""What is known of the GPUs whose code can be read: which words below the parameters are no address of them.

The driver keeps words of its own in bank 0, below the parameters of a kernel: sizes of the grid, the stack, windows,
descriptors, and the address of the parameters in memory. Code that has the address can read all of them by it, so every
word that is not listed here counts as that address.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Architecture:
    """`harmless` are words below the parameters that give no address of them, as begin and end."""

    blackwell: bool
    base: int
    harmless: tuple[tuple[int, int], ...]

    def gives_address(self, offset: int) -> bool:
        """Tell whether a word of bank 0 may be the address of the parameters."""
        return offset < self.base and not any(begin <= offset < end for begin, end in self.harmless)


_SIZES, _WINDOWS, _STACK = (0x00, 0x18), (0x20, 0x28), (0x28, 0x2C)
_TURING = Architecture(False, 0x160, (_SIZES, _WINDOWS, _STACK, (0x8C, 0x94)))
_AMPERE = Architecture(False, 0x160, (_SIZES, _WINDOWS, _STACK, (0x8C, 0x94), (0x118, 0x120)))
_HOPPER = Architecture(False, 0x210, (_SIZES, _WINDOWS, _STACK, (0x44, 0x4C), (0x208, 0x210)))
_BLACKWELL = Architecture(True, 0x380, ((0x2F8, 0x300), (0x358, 0x380)))

ARCHITECTURES = {
    75: _TURING,
    **dict.fromkeys((80, 86, 87, 88, 89), _AMPERE),
    90: _HOPPER,
    **dict.fromkeys((100, 103, 110, 120, 121), _BLACKWELL),
}
"""By compute capability, 90 for 9.0."""
