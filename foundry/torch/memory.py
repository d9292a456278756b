"""What makes torch's caching allocator do the same in a capture and in a restore.

A restore skips warm-up and capture, so these must leave nothing in the allocator that the rest of the program meets.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from gc import collect
from typing import Any

import torch

from foundry import capi
from foundry.capi import Hook

DEFAULT_POOL = (0, 0)


def unsupported() -> str | None:
    """Say why graphs of this process cannot be told apart from its other memory, or None."""
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        return f"torch allocates through {backend}; unset backend:{backend} in PYTORCH_CUDA_ALLOC_CONF"
    if not hasattr(torch.cuda, "MemPool") or not hasattr(torch.cuda, "use_mem_pool"):
        return f"torch {torch.__version__} has no torch.cuda.MemPool; 2.6 is needed"
    return None


def settle(device: torch.device) -> None:
    """Bring the allocator to a state that does not depend on what happened to be collected so far.

    Runs at the same point of a capture and of a restore, so that what it frees is the same in both.
    """
    collect()
    torch.cuda.synchronize(device)
    clear_workspaces()
    torch.cuda.empty_cache()


def settle_as(device: torch.device, base: int, expected: str | None) -> str:
    """Settle, and return the `layout` then. Spares the collection of garbage where the layout is that of a capture.

    To collect is slow with torch's many objects. Where no block is more or less than at capture, none hangs on garbage.
    """
    if expected is not None:
        torch.cuda.synchronize(device)
        clear_workspaces()
        if layout(device, base) == expected:
            torch.cuda.empty_cache()
            return expected
    settle(device)
    return layout(device, base)


def clear_workspaces() -> None:
    """Drop torch's cuBLAS workspaces; the next call of cuBLAS takes a new one from where it then allocates."""
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()


def layout(device: torch.device, base: int) -> str:
    """Return a digest of every live block of torch's default pool on the device: where it lies and how long it is.

    The hook sees only the segments that torch asks the driver for. This tells that torch cut them up alike. Addresses
    are told relative to `base`, the device's range: a restore may have it elsewhere.
    """
    digest = hashlib.sha256()
    for segment in sorted(_segments(device, DEFAULT_POOL), key=lambda item: int(item["address"])):
        for address, block in _blocks(segment):
            if block["state"] == "active_allocated":
                digest.update(f"{address - base} {block['size']} {block.get('requested_size', 0)}\n".encode())
    return digest.hexdigest()


def live_blocks(device: torch.device, pool: tuple[int, int]) -> list[tuple[int, int]]:
    """Return (address, requested size) of each live block of a pool, by address."""
    return sorted(
        (address, int(block.get("requested_size", block["size"])))
        for segment in _segments(device, pool)
        for address, block in _blocks(segment)
        if block["state"] == "active_allocated"
    )


_scratch: dict[int, Any] = {}
"""One pool a device for all that warm-ups need: torch ends the process if a pool is dropped while any is in use."""

_in_scratch: set[int] = set()
"""Devices whose scratch pool is in use: torch refuses to use a pool twice at a time."""


@contextlib.contextmanager
def scratch(hook: Hook, name: str, device: torch.device) -> Iterator[None]:
    """Keep all memory of the block apart: torch's in a pool of its own, the libraries' in the hook's scratch arena."""
    with capi.scratch(hook, name):
        if device.index in _in_scratch:
            yield
            return
        if device.index not in _scratch:
            _scratch[device.index] = torch.cuda.MemPool()
        _in_scratch.add(device.index)
        try:
            with torch.cuda.use_mem_pool(_scratch[device.index], device=device):
                yield
        finally:
            _in_scratch.discard(device.index)


def scratch_pools() -> int:
    """Return how many devices hold memory of warm-ups."""
    return len(_scratch)


def release_scratch() -> None:
    """Give the warm-ups' memory back. Must not run inside `torch.cuda.use_mem_pool` or a capture."""
    _scratch.clear()


def _segments(device: torch.device, pool: tuple[int, int]) -> Iterator[dict[str, Any]]:
    for segment in _snapshot(pool):
        if segment["device"] == device.index and tuple(segment.get("segment_pool_id", DEFAULT_POOL)) == tuple(pool):
            yield segment


def _snapshot(pool: tuple[int, int]) -> list[dict[str, Any]]:
    try:
        return list(torch.cuda.memory_snapshot(pool))
    except TypeError:
        # Versions that cannot be asked for one pool tell of all.
        return list(torch.cuda.memory_snapshot())


def _blocks(segment: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Blocks with their addresses, which older versions leave out."""
    address = int(segment["address"])
    for block in segment["blocks"]:
        yield int(block.get("address", address)), block
        address += int(block["size"])
