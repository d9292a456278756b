"""Parameter blocks by column: the same word of the same kernel stands together over all nodes of all graphs.

Constants become runs, addresses become short periods, and what is left on the stack repeats from layer to layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from foundry.archive.text import ContentError
from foundry.model.tables import Bytes, changes, frozen, padded_sizes, starts


class Source(Protocol):
    """A section's content, in order. What it gives stays as it is until the next call."""

    @property
    def size(self) -> int:
        """All its bytes."""

    def take(self, size: int) -> memoryview:
        """Give the next bytes."""


def _classes(
    kernels: npt.NDArray[np.uint32], sizes: npt.NDArray[np.uint32], words: npt.NDArray[np.uint64]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], slice]]:
    """Go through the nodes of each kernel and block size, in ascending order of both.

    Gives where their blocks begin in `words`, all stretches of words that are as long as a block, by their beginning,
    and where the class stands in the section.
    """
    firsts = starts(padded_sizes(sizes)) // 8
    key = (kernels.astype(np.uint64) << np.uint64(32)) | sizes.astype(np.uint64)
    order = np.argsort(key, kind="stable")
    first = changes(key[order])
    at = 0
    for part in np.split(order, first[1:]):
        width = -(-int(sizes[part[0]]) // 8) if len(part) else 0
        if width:
            yield (
                firsts[part],
                sliding_window_view(words, width, writeable=words.flags.writeable),
                slice(at, at + width * len(part)),
            )
            at += width * len(part)


def _words(sizes: npt.NDArray[np.uint32]) -> int:
    """Count the words of a section."""
    return int((-(-sizes.astype(np.int64) // 8)).sum())


def encode_parameters(parameters: Bytes, kernels: npt.NDArray[np.uint32], sizes: npt.NDArray[np.uint32]) -> memoryview:
    """Lay out a PARAMETERS section. `kernels` and `sizes` are those of each kernel node."""
    section = np.empty(_words(sizes), "<u8")
    for begins, blocks, place in _classes(kernels, sizes, parameters.view("<u8")):
        section[place].reshape(-1, len(begins))[:] = blocks[begins].T
    return section.view(np.uint8).data


def parameter_words(sizes: npt.NDArray[np.uint32], stored: int) -> int:
    """Count the words of all blocks, with their filling; ContentError if a section of that size does not hold them."""
    needed = _words(sizes) * 8
    if needed != stored:
        raise ContentError(f"parameters have {stored} bytes, the nodes ask for {needed}")
    return int(padded_sizes(sizes).sum()) // 8


def decode_parameters(section: Source, kernels: npt.NDArray[np.uint32], sizes: npt.NDArray[np.uint32]) -> Bytes:
    """Read a PARAMETERS section, one kernel's nodes after the other's, so that a part of it is unpacked at a time."""
    words = np.zeros(parameter_words(sizes, section.size), "<u8")
    for begins, blocks, place in _classes(kernels, sizes, words):
        stored = np.frombuffer(section.take((place.stop - place.start) * 8), "<u8")
        blocks[begins] = stored.reshape(-1, len(begins)).T
    return frozen(words.view(np.uint8))
