"""Which bytes of its parameters each kernel of a cubin can read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from foundry.binary.cubin import Cubin
from foundry.binary.errors import ImageError
from foundry.machine.architectures import ARCHITECTURES, Architecture
from foundry.machine.code import INSTRUCTION, Accesses, accesses
from foundry.machine.launches import KernelReads, Mask

CODE_PREFIX = ".text."
UNLOADED_PREFIXES = (".debug", ".nv_debug", ".nv.debug")
RESERVED_PREFIX = ".nv."
"""Of names that stand for memory which the driver keeps."""
SYSTEM_CALLS = frozenset(("vprintf", "__assertfail", "malloc", "free"))
"""Functions of the driver that code may call. They take arguments, and know of no kernel's parameters."""


def code_reads(data: bytes, kernels: Iterable[str]) -> dict[str, KernelReads]:
    """Give what kernels of a cubin read of their parameters. Of a kernel that is missing, that is all of them."""
    try:
        cubin = Cubin(data)
        architecture = ARCHITECTURES.get(cubin.architecture)
        loaded = [each for each in cubin.relocations() if not each[0].startswith(UNLOADED_PREFIXES)]
        if architecture is None or not _closed(cubin, loaded):
            return {}
        calls_away = not any(inner for _, _, inner in loaded)
        shared = [accesses(code, architecture) for code in cubin.functions()]
    except ImageError:
        return {}
    found = {}
    for name in kernels:
        try:
            reads = _of_kernel(cubin, name, architecture, shared, calls_away)
        except ImageError:
            continue
        if reads is not None:
            found[name] = reads
    return found


def _closed(cubin: Cubin, relocations: list[tuple[str, tuple[str, ...], bool]]) -> bool:
    """Tell whether its code is what runs, and a kernel's can reach no code but its own and that of functions."""
    functions = {name for name in cubin.undefined if not name.startswith(RESERVED_PREFIX)}
    if not cubin.executable or not functions <= SYSTEM_CALLS:
        return False
    return not any(
        section.startswith(CODE_PREFIX) or any(not section.endswith(f".{kernel}") for kernel in kernels)
        for section, kernels, _ in relocations
    )


def _of_kernel(
    cubin: Cubin, name: str, architecture: Architecture, shared: list[Accesses], calls_away: bool
) -> KernelReads | None:
    """Give what a kernel and all functions of its cubin read. A call to any of them would be hard to rule out."""
    place = cubin.parameter_bank(name)
    code = cubin.code(name)
    if place is None or code is None or len(code) % INSTRUCTION:
        return None
    base, size = place
    if base != architecture.base or cubin.bank_bytes(name) != base + size:
        return None
    own = accesses(code, architecture)
    if any(map(architecture.gives_address, set(own.begin.tolist()))):
        return None
    mask = _mask([own, *shared], architecture, size)
    if shared or architecture.blackwell or cubin.begin(name):
        return KernelReads(size, mask, architecture)
    return KernelReads(size, mask, architecture, code, calls_away)


def _mask(found: list[Accesses], architecture: Architecture, size: int) -> Mask | None:
    mask = np.zeros(size, np.bool_)
    for each in found:
        if each.everything or any(map(architecture.gives_address, set(each.begin.tolist()))):
            return None
        inside = each.end > architecture.base
        for begin, end in set(zip(each.begin[inside].tolist(), each.end[inside].tolist(), strict=True)):
            mask[max(begin - architecture.base, 0) : end - architecture.base] = True
    return mask
