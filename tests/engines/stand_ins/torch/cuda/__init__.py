from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from cuda.bindings import driver

import torch

numbers = itertools.count(1)
_context: list[Any] = []


def _begin() -> None:
    if not _context:
        torch.check(driver.cuInit(0))
        _context.append(torch.check(driver.cuDevicePrimaryCtxRetain(torch.check(driver.cuDeviceGet(0)))))
        torch.check(driver.cuCtxSetCurrent(_context[0]))


class Stream:
    def __init__(self, device: Any = None, *, handle: int | None = None) -> None:
        _begin()
        self.cuda_stream = int(torch.check(driver.cuStreamCreate(1))) if handle is None else handle

    def synchronize(self) -> None:
        torch.check(driver.cuStreamSynchronize(self.cuda_stream))

    def wait_stream(self, other: Any) -> None:
        other.synchronize()


_streams: list[Stream] = []


def current_stream(device: Any = None) -> Stream:
    if not _streams:
        _streams.append(Stream(handle=0))
    return _streams[-1]


@contextlib.contextmanager
def stream(chosen: Stream) -> Iterator[None]:
    current_stream()
    _streams.append(chosen)
    try:
        yield
    finally:
        _streams.pop()


class MemPool:
    def __init__(self) -> None:
        self.id = (0, next(numbers))


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    torch.pools.append(pool.id)
    try:
        yield
    finally:
        torch.pools.pop()


class Generator:
    """Nothing here takes random numbers, unless a program moves the offset itself."""

    def __init__(self) -> None:
        self.seed, self.offset, self.pair = 0, 0, ()

    def initial_seed(self) -> int:
        return self.seed

    def get_offset(self) -> int:
        return self.offset

    def set_offset(self, offset: int) -> None:
        self.offset = offset


default_generators = [Generator()]


def current_device() -> int:
    _begin()
    return 0


def get_allocator_backend() -> str:
    return "native"


def graph_pool_handle() -> tuple[int, int]:
    return (9, next(numbers))


def synchronize(device: Any = None) -> None:
    _begin()
    torch.check(driver.cuCtxSynchronize())


def empty_cache() -> None:
    for _, pointer in torch.cached:
        torch.check(driver.cuMemFree(pointer))
    torch.cached.clear()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    _begin()
    free, total = torch.check(driver.cuMemGetInfo())
    return int(free), int(total)


def memory_snapshot(pool: Any = None) -> list[dict[str, Any]]:
    return [
        {
            "device": 0,
            "address": address,
            "segment_pool_id": own,
            "blocks": [{"size": size, "requested_size": size, "state": "active_allocated"}],
        }
        for address, (own, size) in torch.blocks.items()
        if pool is None or own == tuple(pool)
    ]


from torch.cuda.graphs import CUDAGraph, graph  # noqa: E402, F401
