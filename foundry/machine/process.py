"""What the launches of a process read, out of the images that it has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foundry.binary import simulated
from foundry.binary.cubin import ELF_MAGIC
from foundry.binary.errors import ImageError
from foundry.binary.fatbin import KIND_ELF, MAGIC, entries
from foundry.machine.kernels import code_reads
from foundry.machine.launches import KernelReads
from foundry.model import NONE, Process
from foundry.model.reads import Index, Reads
from foundry.model.tables import padded_sizes, starts
from foundry.model.views import kernel_ids, parameter_sizes

Blob = Callable[[int], "bytes | None"]


def reads_of(process: Process, blob: Blob, wanted: Index | None = None) -> Reads:
    """Tell what the launches of a process read, or only some of them, given by their rows.

    `blob` gives the bytes of one, None for one that is not at hand.
    """
    ids = kernel_ids(process).astype(np.int64)
    if wanted is not None:
        others = np.ones(len(ids), np.bool_)
        others[wanted] = False
        ids[others] = NONE
    found, absent = _kernels(process, np.unique(ids[ids != NONE]).tolist(), blob)
    blocks = starts(padded_sizes(parameter_sizes(process)))
    pattern = np.full(len(ids), -1)
    masks: list[np.ndarray[tuple[int], np.dtype[np.bool_]]] = []
    for reads, numbers in found:
        rows = np.flatnonzero(np.isin(ids, numbers))
        launches = process.launches[rows]
        for some, mask in reads.of_launches(process.parameters, blocks[rows], launches, process.devices):
            pattern[rows[some]] = len(masks)
            masks.append(mask)
    return Reads.build(masks, pattern, np.isin(ids, [*absent, NONE]))


def _kernels(process: Process, numbers: list[int], blob: Blob) -> tuple[list[tuple[KernelReads, list[int]]], list[int]]:
    """Give what kernels read, each with its numbers, and the kernels whose code is not at hand.

    A kernel of an image that was loaded several times has several numbers. One that reads everything is left out.
    """
    wanted: dict[int, dict[str, list[int]]] = {}
    for number in numbers:
        kernel = process.kernels[number]
        image = process.images[kernel.image] if kernel.image != NONE else None
        # Of an image that was linked there is no code that runs.
        at = NONE if image is None or image.linked else image.blob
        wanted.setdefault(at, {}).setdefault(kernel.name, []).append(number)
    found = []
    absent: list[int] = []
    # In their order in the archive: neighbours lie in one section, which is unpacked as a whole.
    for at, names in sorted(wanted.items()):
        data = blob(at) if at != NONE else None
        if data is None:
            absent += [number for some in names.values() for number in some]
            continue
        for name, reads in image_reads(data, set(names)).items():
            some = [number for number in names[name] if process.kernels[number].parameter_bytes == reads.size]
            if some:
                found.append((reads, some))
    return found, absent


def image_reads(data: bytes, kernels: set[str]) -> dict[str, KernelReads]:
    """Give what kernels of an image of any kind read. Of those that are missing, that is everything."""
    if data.startswith(ELF_MAGIC):
        return code_reads(data, kernels)
    try:
        if data.startswith(MAGIC.to_bytes(4, "little")):
            payloads = [entry.payload for entry in entries(data) if entry.kind == KIND_ELF]
            data = payloads[0] if len(payloads) == 1 else b""
        if data.startswith(simulated.MAGIC):
            return {
                name: KernelReads(len(mask), mask) for name, mask in simulated.reads(data).items() if name in kernels
            }
    except ImageError:
        pass
    return {}
