"""Parameter blocks by column: the same word of the same kernel stands together over all nodes of all graphs.

Constants become runs, addresses become short periods, and what is left on the stack repeats from layer to layer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from foundry.archive.text import ContentError
from foundry.model.tables import Bytes, frozen, padded_sizes, starts


def _classes(
    kernels: npt.NDArray[np.uint32], sizes: npt.NDArray[np.uint32]
) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
    """Go through the nodes of each kernel and block size, in ascending order of both; with the words of a block."""
    key = (kernels.astype(np.uint64) << np.uint64(32)) | sizes.astype(np.uint64)
    order = np.argsort(key, kind="stable")
    _, first = np.unique(key[order], return_index=True)
    for part in np.split(order, first[1:]):
        if len(part):
            yield part, -(-int(sizes[part[0]]) // 8)


def encode_parameters(parameters: Bytes, kernels: npt.NDArray[np.uint32], sizes: npt.NDArray[np.uint32]) -> bytes:
    """Lay out a PARAMETERS section. `kernels` and `sizes` are those of each kernel node."""
    firsts = starts(padded_sizes(sizes)) // 8
    words = parameters.view("<u8")
    laid_out = np.empty(int((-(-sizes.astype(np.int64) // 8)).sum()), "<u8")
    at = 0
    for rows, width in _classes(kernels, sizes):
        count = width * len(rows)
        laid_out[at : at + count] = words[firsts[rows] + np.arange(width)[:, None]].reshape(-1)
        at += count
    return laid_out.tobytes()


def decode_parameters(data: bytes | int, kernels: npt.NDArray[np.uint32], sizes: npt.NDArray[np.uint32]) -> Bytes:
    """Read a PARAMETERS section; of one that is given by its size alone, check that and give zeros."""
    firsts = starts(padded_sizes(sizes)) // 8
    needed = int((-(-sizes.astype(np.int64) // 8)).sum()) * 8
    size = data if isinstance(data, int) else len(data)
    if needed != size:
        raise ContentError(f"parameters have {size} bytes, the nodes ask for {needed}")
    words = np.zeros(int(firsts[-1]), "<u8")
    if isinstance(data, int):
        return frozen(words.view(np.uint8))
    stored = np.frombuffer(data, "<u8")
    at = 0
    for rows, width in _classes(kernels, sizes):
        count = width * len(rows)
        words[firsts[rows] + np.arange(width)[:, None]] = stored[at : at + count].reshape(width, len(rows))
        at += count
    return frozen(words.view(np.uint8))
