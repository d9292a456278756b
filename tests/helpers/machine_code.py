"""Cubins of real compilers that tests look into, and images of the simulator that say what they do not read."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import numpy as np

from foundry.machine.kernels import code_reads
from foundry.machine.launches import KernelReads
from foundry.model.memory import Device
from foundry.model.tables import LAUNCH

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cubins"
ARCHITECTURES = (80, 90, 100)
KERNELS = (
    *("padded", "some_slots", "any_slot", "slot_of_group", "by_count", "address", "handle", "prints", "calls"),
    "nothing",
)
BASE, ARENA = 0x400000000000, 1 << 38
DEVICE = Device(0, "a GPU", bytes(16), 9, 0, 132, 1 << 36, 1, BASE, ARENA)
Spans = "list[tuple[int, int]] | None"


def cubin(architecture: int) -> bytes:
    """The code of `reads.cu` for a GPU."""
    return zlib.decompress(base64.b64decode((CUBINS / f"reads_{architecture}.txt").read_text(encoding="ascii")))


def kernel(architecture: int, name: str) -> KernelReads:
    """What a kernel of `reads.cu` reads; of one that is left out, everything."""
    return code_reads(cubin(architecture), [name]).get(name, KernelReads(0, None))


def spans(mask: np.ndarray[tuple[int], np.dtype[np.bool_]] | None) -> list[tuple[int, int]] | None:
    """Where stretches of read bytes begin and end; None if everything may be read."""
    if mask is None:
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]]))).reshape(-1, 2)
    return [(begin, end) for begin, end in edges.tolist()]


def launched(reads: KernelReads, *blocks: bytes, grid: tuple[int, int, int] = (4, 1, 1)) -> list[object]:
    """What launches with these parameters read, one after the other; launches of one pattern stand together."""
    padded = [block.ljust(-(-len(block) // 16) * 16, b"\0") for block in blocks]
    starts = np.cumsum([0, *map(len, padded)])[:-1].astype(np.int64)
    shapes = np.zeros(len(blocks), LAUNCH)
    shapes["grid"], shapes["block"] = grid, (32, 1, 1)
    found: list[object] = ["everything"] * len(blocks)
    data = np.frombuffer(b"".join(padded), np.uint8)
    for some, mask in reads.of_launches(data, starts, shapes, (DEVICE,)):
        for at in some.tolist():
            found[at] = spans(mask)
    return found


def simulated_image(*kernels: str) -> bytes:
    """An image of the simulator with these lines, and no code."""
    text = "".join(f"kernel {line}\n" for line in kernels).encode()
    at = -(-(24 + len(text)) // 16) * 16
    return (struct.pack("<8sQII", b"FDRYSIM1", at + 16, len(text), at) + text).ljust(at + 16, b"\0")
