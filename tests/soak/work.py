"""What the soak program computes: 35 graphs on the driver interface, and the same results by the processor.

A graph copies its input, mixes it in several kernels, and copies the outcome to its output. All of it is arithmetic of
32-bit words, so the processor's results must be equal in every bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np

from foundry.selftest import Driver

Words = np.ndarray
BATCHES = (1, 2, 4, *range(8, 257, 8))
"""35 of them, as many as a decode server captures."""
WIDTH = 32
LAYERS = 6
MOST = BATCHES[-1] * WIDTH
THREADS = 128
THREAD_LOCAL = 1
KERNEL = b"mix"
PTX = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry mix(.param .u64 words, .param .u32 count, .param .u32 salt)
{
    .reg .pred %p<2>;
    .reg .b32 %r<10>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [words];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r8, [salt];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    cvta.to.global.u64 %d2, %d1;
    mul.wide.u32 %d3, %r5, 4;
    add.s64 %d4, %d2, %d3;
    ld.global.u32 %r6, [%d4];
    add.s32 %r9, %r5, %r8;
    mad.lo.s32 %r7, %r6, 3, %r9;
    st.global.u32 [%d4], %r7;
done:
    ret;
}
\0"""


def expected(given: Words, salt: int) -> Words:
    """Compute on the processor what a graph makes of its input."""
    words = given.astype(np.uint32)
    index = np.arange(len(words), dtype=np.uint32)
    for layer in range(LAYERS):
        words = words * np.uint32(3) + index + np.uint32(salt + layer)
    return words


class Device:
    """A context with a stream, the kernel, and one input, work and output array for all graphs."""

    def __init__(self, image: Path | None) -> None:
        self.driver = driver = Driver()
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        driver("cuInit", 0)
        driver("cuDeviceGet", ctypes.byref(device), 0)
        driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        driver("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        driver("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.kernel = ctypes.c_void_p()
        driver("cuModuleLoadData", ctypes.byref(module), PTX if image is None else image.read_bytes())
        driver("cuModuleGetFunction", ctypes.byref(self.kernel), module, KERNEL)
        self.input, self.work, self.output = (self.allocate(MOST * 4) for _ in range(3))
        self._found = np.zeros(MOST, np.uint32)

    def allocate(self, size: int) -> int:
        """Take device memory."""
        address = ctypes.c_uint64()
        self.driver("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        """Give device memory back."""
        self.driver("cuMemFree_v2", ctypes.c_uint64(address))

    def free_bytes(self) -> int:
        """Return how much of the device's memory is free."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.driver("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def wait(self) -> None:
        """Wait until the stream is idle."""
        self.driver("cuStreamSynchronize", self.stream)

    def step(self, count: int, salt: int) -> None:
        """Put the work on the stream."""
        size = ctypes.c_size_t(count * 4)
        source, work, target = (ctypes.c_uint64(address) for address in (self.input, self.work, self.output))
        self.driver("cuMemcpyDtoDAsync_v2", work, source, size, self.stream)
        blocks = -(-count // THREADS)
        for layer in range(LAYERS):
            words, add = ctypes.c_uint32(count), ctypes.c_uint32(salt + layer)
            parameters = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in (work, words, add)))
            shape = (blocks, 1, 1, THREADS, 1, 1, 0)
            self.driver("cuLaunchKernel", self.kernel, *shape, self.stream, parameters, None)
        self.driver("cuMemcpyDtoDAsync_v2", target, work, size, self.stream)

    def capture(self, count: int, salt: int) -> ctypes.c_void_p:
        """Capture the work into a graph."""
        graph = ctypes.c_void_p()
        self.driver("cuStreamBeginCapture_v2", self.stream, THREAD_LOCAL)
        self.step(count, salt)
        self.driver("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        return graph

    def instantiate(self, graph: ctypes.c_void_p) -> ctypes.c_void_p:
        """Make an executable graph."""
        executable = ctypes.c_void_p()
        self.driver("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        return executable

    def results(self, given: Words, launch: Callable[[int], object]) -> Words:
        """Hand the input over, launch, and read the output."""
        size = ctypes.c_size_t(given.nbytes)
        found = self._found[: len(given)]
        # In the order of the stream: a copy from pageable memory may end after the call that makes it.
        source = ctypes.c_void_p(given.ctypes.data)
        self.driver("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(self.input), source, size, self.stream)
        launch(self.stream.value or 0)
        self.wait()
        self.driver("cuMemcpyDtoH_v2", ctypes.c_void_p(found.ctypes.data), ctypes.c_uint64(self.output), size)
        return found
