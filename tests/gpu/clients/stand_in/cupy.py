"""What cupy_job.py uses of CuPy, on `cuda.bindings`: kernels come compiled, from the image that CUPY_KERNELS names."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
from cuda.bindings import driver

THREADS = 256
current: list[Stream] = []


def call(answer: tuple[Any, ...]) -> Any:
    """Return what a driver function gave, or raise with the name of its error."""
    result, *values = answer
    if int(result) != 0:
        raise RuntimeError(f"the driver said {result!r}")
    return values[0] if values else None


def _begin() -> Any:
    call(driver.cuInit(0))
    call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(call(driver.cuDeviceGet(0))))))
    return call(driver.cuModuleLoadData(Path(os.environ["CUPY_KERNELS"]).read_bytes()))


module = _begin()


class Graph:
    """An exec."""

    def __init__(self, exec: Any) -> None:
        self.exec = exec

    def launch(self, stream: Stream) -> None:
        call(driver.cuGraphLaunch(self.exec, stream.ptr))


class Stream:
    """A stream; current within `with`."""

    def __init__(self, *, non_blocking: bool) -> None:
        self.ptr = int(call(driver.cuStreamCreate(int(non_blocking))))

    def __enter__(self) -> Stream:
        current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        current.pop()

    def synchronize(self) -> None:
        call(driver.cuStreamSynchronize(self.ptr))

    def begin_capture(self) -> None:
        call(driver.cuStreamBeginCapture(self.ptr, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))

    def end_capture(self) -> Graph:
        graph = call(driver.cuStreamEndCapture(self.ptr))
        made = Graph(call(driver.cuGraphInstantiate(graph, 0)))
        call(driver.cuGraphDestroy(graph))
        return made


class Array:
    """Words on the device, from an address on."""

    def __init__(self, address: int, size: int) -> None:
        self.data, self.size = SimpleNamespace(ptr=address), size

    def __getitem__(self, part: slice) -> Array:
        return Array(self.data.ptr, part.stop)

    def set(self, values: numpy.ndarray, stream: Stream) -> None:
        call(driver.cuMemcpyHtoDAsync(self.data.ptr, values.ctypes.data, values.nbytes, stream.ptr))

    def get(self, stream: Stream) -> numpy.ndarray:
        found = numpy.empty(self.size, numpy.uint32)
        call(driver.cuMemcpyDtoHAsync(found.ctypes.data, self.data.ptr, found.nbytes, stream.ptr))
        return found


def empty(size: int, _: object) -> Array:
    """Allocate words."""
    return Array(int(call(driver.cuMemAlloc(4 * size))), size)


class Kernel:
    """A kernel of the image."""

    def __init__(self, name: str) -> None:
        self.function = call(driver.cuModuleGetFunction(module, name.encode()))

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        values = tuple(one.data.ptr if isinstance(one, Array) else int(one) for one in arguments)
        types = tuple(ctypes.c_void_p if isinstance(one, Array) else ctypes.c_uint32 for one in arguments)
        stream = current[-1].ptr
        call(driver.cuLaunchKernel(self.function, *grid, 1, 1, *block, 1, 1, 0, stream, (values, types), 0))


def RawKernel(_: str, name: str) -> Kernel:
    """Find a kernel that CuPy would compile."""
    return Kernel(name)


class ElementwiseKernel:
    """One that CuPy would make of an expression for an element; the image has it whole."""

    def __init__(self, _: str, __: str, ___: str, name: str) -> None:
        self.kernel = Kernel(name)

    def __call__(self, by: numpy.uint32, array: Array) -> None:
        self.kernel((array.size // THREADS,), (THREADS,), (array, numpy.uint32(array.size), by))


cuda = SimpleNamespace(Stream=Stream)
