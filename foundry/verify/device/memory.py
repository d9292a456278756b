"""Device memory at the addresses of the archive, no more of it than the graph at hand points to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from foundry.model import Arena, Device, Graph, Process
from foundry.model.memory import PAGE
from foundry.verify.device.bindings import OUT_OF_MEMORY, Driver, DriverError

LARGEST_PIECE = 256 << 20
MARGIN = 256 << 20
"""Bytes that are left for the driver's own needs."""

Span = tuple[int, int]
"""From an address up to another."""


class RangeTakenError(Exception):
    """The address range of a device is not free in this process."""


class MemoryLackingError(Exception):
    """The device does not have the memory that a graph points to."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of mapped memory."""

    start: int
    end: int
    handle: Any


class DeviceMemory:
    """The range of one device, reserved at the recorded address."""

    def __init__(self, driver: Driver, device: Device, ordinal: int) -> None:
        self._driver = driver
        self._ordinal = ordinal
        self._pieces: list[Piece] = []
        size = device.arena_size * len(Arena)
        wanted = driver.module.CUdeviceptr(device.base)
        try:
            got = int(driver.cuMemAddressReserve(size, 0, wanted, 0))
        except DriverError as error:
            raise RangeTakenError(f"{size} bytes at {device.base:#x} cannot be reserved: {error}") from None
        if got != device.base:
            driver.cuMemAddressFree(driver.module.CUdeviceptr(got), size)
            raise RangeTakenError(f"{size} bytes are not free at {device.base:#x}, the driver gave {got:#x}")

    def hold(self, spans: list[Span]) -> None:
        """Have these spans mapped, and others unmapped where that is needed. Raises MemoryLackingError."""
        missing = list(self._missing(spans))
        needed = sum(end - start for start, end in missing)
        if needed and needed + MARGIN > self._free():
            self._drop_all_but(spans)
            free = self._free()
            if needed + MARGIN > free:
                raise MemoryLackingError(f"it points to {needed} bytes more than are mapped, {free} bytes are free")
        for start, end in missing:
            for at in range(start, end, LARGEST_PIECE):
                self._map(at, min(end, at + LARGEST_PIECE))

    def fill(self, spans: list[Span], contents: Iterable[tuple[int, bytes]]) -> None:
        """Fill mapped spans with zeros, then with the recorded bytes that lie in them."""
        address = self._driver.module.CUdeviceptr
        for start, end in spans:
            self._driver.cuMemsetD8(address(start), 0, end - start)
        for at, data in contents:
            for start, end in spans:
                low, high = max(start, at), min(end, at + len(data))
                if low < high:
                    self._driver.cuMemcpyHtoD(address(low), data[low - at : high - at], high - low)
        self._driver.cuCtxSynchronize()

    def _free(self) -> int:
        return int(self._driver.cuMemGetInfo()[0])

    def _missing(self, spans: list[Span]) -> Iterator[Span]:
        held = sorted((piece.start, piece.end) for piece in self._pieces)
        for start, end in spans:
            for low, high in held:
                if high <= start or low >= end:
                    continue
                if low > start:
                    yield start, low
                start = max(start, high)
            if start < end:
                yield start, end

    def _drop_all_but(self, spans: list[Span]) -> None:
        kept = []
        for piece in self._pieces:
            if any(piece.start < end and start < piece.end for start, end in spans):
                kept.append(piece)
                continue
            self._driver.cuMemUnmap(self._driver.module.CUdeviceptr(piece.start), piece.end - piece.start)
            self._driver.cuMemRelease(piece.handle)
        self._pieces = kept

    def _map(self, start: int, end: int) -> None:
        driver, module = self._driver, self._driver.module
        location = module.CUmemLocation()
        location.type = module.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        location.id = self._ordinal
        wanted = module.CUmemAllocationProp()
        wanted.type = module.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location = location
        access = module.CUmemAccessDesc()
        access.location = location
        access.flags = module.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        address, size = module.CUdeviceptr(start), end - start
        try:
            handle = driver.cuMemCreate(size, wanted, 0)
        except DriverError as error:
            if error.name != OUT_OF_MEMORY:
                raise
            raise MemoryLackingError(f"{size} bytes more were not given") from None
        driver.cuMemMap(address, size, 0, handle, 0)
        self._pieces.append(Piece(start, end, handle))
        driver.cuMemSetAccess(address, size, [access], 1)


def spans_of(process: Process, graph: Graph) -> list[Span]:
    """Give the pages of all allocations that a graph points to, in ascending order, those that touch joined."""
    pages = []
    for reference in graph.references:
        row = process.allocations[reference]
        start, size = int(row["address"]), max(int(row["taken"]), int(row["size"]))
        pages.append((start // PAGE * PAGE, -(-(start + size) // PAGE) * PAGE))
    joined: list[Span] = []
    for start, end in sorted(pages):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
