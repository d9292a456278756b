"""The program that `foundry doctor` captures and restores: a few graphs on the driver interface, and their results.

Run as `python -m foundry.selftest`. Prints one JSON object. Needs nothing but a driver, real or simulated; on a GPU
that runs its PTX a kernel is in the graphs, too.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from typing import Any

from foundry.graphs import GraphSet, commit

SET = "self-test"
SIZES = (1024, 256, 64)
"""Words that each graph works on, largest first."""
THREADS = 64
LEAST_COMPUTE = (7, 5)
COMPUTE_MAJOR, COMPUTE_MINOR = 75, 76
CAPTURE_OF_THIS_THREAD = 1
KERNEL = b"add_index"
PTX = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry add_index(.param .u64 words, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [words];
    ld.param.u32 %r1, [count];
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
    add.s32 %r7, %r6, %r5;
    st.global.u32 [%d4], %r7;
done:
    ret;
}
\0"""


class Driver:
    """Driver functions by name; a result that is not 0 ends the program."""

    def __init__(self) -> None:
        self._library: Any = ctypes.CDLL("libcuda.so.1")
        self.simulated = hasattr(self._library, "foundry_sim_version")

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function."""
        result = getattr(self._library, name)(*arguments)
        if result:
            sys.exit(f"{name}: CUresult {result}")


class Work:
    """Two arrays on the device, and graphs that fill the one, copy it to the other and, with a kernel, add to that."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        device = ctypes.c_int()
        context = ctypes.c_void_p()
        driver("cuInit", 0)
        driver("cuDeviceGet", ctypes.byref(device), 0)
        driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        driver("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        driver("cuStreamCreate", ctypes.byref(self.stream), 1)
        self._kernel = ctypes.c_void_p()
        if not driver.simulated and self._compute(device) >= LEAST_COMPUTE:
            module = ctypes.c_void_p()
            driver("cuModuleLoadData", ctypes.byref(module), PTX)
            driver("cuModuleGetFunction", ctypes.byref(self._kernel), module, KERNEL)
        self.source, self.target = self._memory(), self._memory()

    def _compute(self, device: ctypes.c_int) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._driver("cuDeviceGetAttribute", ctypes.byref(major), COMPUTE_MAJOR, device)
        self._driver("cuDeviceGetAttribute", ctypes.byref(minor), COMPUTE_MINOR, device)
        return major.value, minor.value

    def _memory(self) -> int:
        address = ctypes.c_uint64()
        self._driver("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(SIZES[0] * 4))
        return address.value

    def step(self, words: int) -> None:
        """Put the work on the stream."""
        size = ctypes.c_size_t(words * 4)
        source, target = ctypes.c_uint64(self.source), ctypes.c_uint64(self.target)
        self._driver("cuMemsetD32Async", source, words * 7, ctypes.c_size_t(words), self.stream)
        self._driver("cuMemcpyDtoDAsync_v2", target, source, size, self.stream)
        if self._kernel:
            count = ctypes.c_uint32(words)
            parameters = (ctypes.c_void_p * 2)(ctypes.addressof(target), ctypes.addressof(count))
            shape = (-(-words // THREADS), 1, 1, THREADS, 1, 1, 0)
            self._driver("cuLaunchKernel", self._kernel, *shape, self.stream, parameters, None)

    def capture(self, words: int) -> Callable[[int], object]:
        """Capture the work and return what launches it."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._driver("cuStreamBeginCapture_v2", self.stream, CAPTURE_OF_THIS_THREAD)
        self.step(words)
        self._driver("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self._driver("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        self._driver("cuGraphDestroy", graph)
        return lambda stream: self._driver("cuGraphLaunch", executable, ctypes.c_void_p(stream))

    def wait(self) -> None:
        """Wait until the stream is idle."""
        self._driver("cuStreamSynchronize", self.stream)

    def run(self, words: int, work: Callable[[], object]) -> list[int]:
        """Clear the target, do the work, and read what is in the target."""
        found = (ctypes.c_uint32 * words)()
        target, size = ctypes.c_uint64(self.target), ctypes.c_size_t(words * 4)
        self._driver("cuMemsetD32Async", target, 0, ctypes.c_size_t(words), self.stream)
        work()
        self.wait()
        self._driver("cuMemcpyDtoH_v2", found, target, size)
        return list(found)


def main() -> None:
    """Get each graph, replay it, and compare with the same work without a graph."""
    work = Work(Driver())
    graphs = GraphSet(SET)
    restored, right = 0, True
    results: dict[str, int] = {}
    for words in SIZES:

        def warm_up(words: int = words) -> None:
            work.step(words)
            work.wait()

        graph = graphs.capture_or_restore(
            words,
            warm_up=warm_up,
            capture=lambda words=words: work.capture(words),  # type: ignore[misc]
            inputs={"words": words, "pointers": [work.source, work.target]},
        )
        restored += graph.restored
        replayed = work.run(words, lambda graph=graph: graph.launch(work.stream.value or 0))  # type: ignore[misc]
        right = right and replayed == work.run(words, lambda words=words: work.step(words))  # type: ignore[misc]
        results[graph.key] = sum(replayed)
    commit()
    json.dump({"restored": restored, "right": right, "results": results, "reasons": graphs.reasons}, sys.stdout)


if __name__ == "__main__":
    main()
