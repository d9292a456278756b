"""Finds the addresses that a proof names, and checks it against its process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foundry.model.capture import Process
from foundry.model.constants import NONE, Arena
from foundry.model.memory import Device
from foundry.model.proof import Proof
from foundry.model.tables import COPY_SIZE, Table, Words, padded_sizes, starts
from foundry.model.unsound import UnsoundError
from foundry.model.views import parameter_sizes

U64 = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]

WORD = 8
MOST_DIGITS = 20


def parameter_bytes(process: Process, places: Table) -> Index:
    """Tell where in Process.parameters the places of kernel nodes are."""
    first = starts(padded_sizes(parameter_sizes(process)))
    found: Index = first[places["row"]] + places["offset"]
    return found


def words_at(data: npt.NDArray[np.uint8], places: Index) -> U64:
    """Read 8 bytes at each place, at any alignment."""
    if not len(places):
        return np.zeros(0, "<u8")
    return np.ascontiguousarray(data[places[:, None] + np.arange(WORD)]).view("<u8").reshape(-1)


def device_of(words: U64, devices: Sequence[Device]) -> Words:
    """Give the ordinal of the device in whose range each word lies, NONE if in none."""
    found = np.full(len(words), NONE, np.uint32)
    for device in devices:
        inside = (words - np.uint64(device.base)) < np.uint64(device.arena_size * len(Arena))
        found[inside] = device.ordinal
    return found


def number_at(text: bytes, offset: int) -> int:
    """Read the decimal number that begins at a byte of the text; -1 if none does."""
    end = offset
    while end < len(text) and end - offset <= MOST_DIGITS and text[end : end + 1].isdigit():
        end += 1
    apart = offset == 0 or not text[offset - 1 : offset].isdigit()
    return int(text[offset:end]) if apart and 0 < end - offset <= MOST_DIGITS else -1


def _require(condition: bool | np.bool_, text: str) -> None:
    if not condition:
        raise UnsoundError(f"its proof {text}")


def check_proof(process: Process, proof: Proof) -> None:
    """Check that every entry names an address of a proven graph; raises UnsoundError."""
    graphs = proof.graphs.astype(np.int64)
    _require(_ascend(graphs, 1), "has graphs out of order")
    _require((graphs < len(process.graphs)).all(), "names a graph that is not there")
    _require(all(process.graphs[at].restorable for at in graphs.tolist()), "is of a graph that cannot be restored")
    sizes = parameter_sizes(process).astype(np.int64)
    _check_places(proof.parameters, sizes, "parameters")
    _check_places(proof.copies, np.full(len(process.copies) // COPY_SIZE, COPY_SIZE, np.int64), "copies")
    memsets = proof.memsets.astype(np.int64)
    _require(_ascend(memsets, 1), "has memsets out of order")
    _require((memsets < len(process.memsets)).all(), "names a memset that is not there")
    words = np.concatenate(
        [
            words_at(process.parameters, parameter_bytes(process, proof.parameters)),
            words_at(process.copies, proof.copies["row"].astype(np.int64) * COPY_SIZE + proof.copies["offset"]),
            process.memsets["destination"][memsets],
            _numbers(process, proof.texts),
        ]
    )
    _require((device_of(words, process.devices) != NONE).all(), "names a word that is no address of a device's range")


def _check_places(places: Table, sizes: Index, what: str) -> None:
    rows, offsets = places["row"].astype(np.int64), places["offset"].astype(np.int64)
    _require((rows < len(sizes)).all(), f"names {what} that are not there")
    _require((offsets + WORD <= sizes[rows]).all(), f"names a word past the end of its {what}")
    _require(_ascend(rows << 32 | offsets, WORD), f"has {what} out of order")


def _ascend(values: Index, step: int) -> bool:
    return bool((np.diff(values) >= step).all())


def _numbers(process: Process, texts: Table) -> U64:
    found: list[int] = []
    before = (-1, 0)
    for row, offset in texts.tolist():
        _require(row < len(process.graphs), "names metadata of a graph that is not there")
        text = process.graphs[row].metadata.encode("utf-8", "surrogatepass")
        number = number_at(text, offset)
        _require(0 <= number < 1 << 64, "names metadata where no number begins")
        _require((row, offset) > before, "has metadata out of order")
        before = (row, offset)
        found.append(number)
    return np.array(found, "<u8")
