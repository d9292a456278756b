"""A program whose kernels take a struct with noise in it: noisy_program.py IMAGE KEY...

Each key is a graph that launches the kernel of that name, up to a dot. What the noise is depends on how often the
program ran in this folder; Python code in THIRD is run from the third time on. The lowest byte of the pointer is always
the same.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foundry.graphs import GraphSet, Span, commit

CANARY = b"the-secret-that-lay-on-the-stack"
WORDS = 16


def given(run: int, value: int) -> bytes:
    """The struct: a number, padding, a string and a pointer of the stack, and a constant."""
    canary = bytes(byte + 13 * run for byte in CANARY)
    stack = 0x7F0011223344 + run * 0x0101010100 + value * 0x4700
    return struct.pack("<II32sQQ", value, 0x10203040 * (run + 1), canary, stack, 5)


class Program:
    """The driver, one stream, and memory that all graphs write."""

    def __init__(self, image: bytes, run: int) -> None:
        self._library: Any = ctypes.CDLL("libcuda.so.1")
        self._run = run
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.stream, self._module, self.out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.call("cuModuleLoadData", ctypes.byref(self._module), image)
        self.call("cuMemAlloc_v2", ctypes.byref(self.out), ctypes.c_size_t(WORDS * 4))

    def call(self, name: str, *arguments: Any) -> None:
        result = getattr(self._library, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: CUresult {result}")

    def capture(self, kernel: str, value: int) -> Callable[[int], object]:
        function, graph, executable = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self._module, kernel.encode())
        block = ctypes.create_string_buffer(given(self._run, value), 56)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(self.out), ctypes.addressof(block))
        self.call("cuStreamBeginCapture_v2", self.stream, 1)
        self.call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, self.stream, parameters, None)
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        self.call("cuGraphDestroy", graph)
        return lambda stream: self.call("cuGraphLaunch", executable, ctypes.c_void_p(stream))

    def numbers(self) -> list[int]:
        self.call("cuStreamSynchronize", self.stream)
        found = (ctypes.c_uint32 * WORDS)()
        self.call("cuMemcpyDtoH_v2", found, self.out, ctypes.c_size_t(ctypes.sizeof(found)))
        return list(found)


def main() -> None:
    """Make the graphs, launch each, and print what it gave."""
    runs = Path("runs")
    run = runs.stat().st_size if runs.exists() else 0
    runs.write_text("x" * (run + 1))
    if run >= 2:
        exec(os.environ.get("THIRD", ""))
    program = Program(Path(sys.argv[1]).read_bytes(), run)
    graphs = GraphSet("noisy")
    made = {}
    for at, key in enumerate(sys.argv[2:]):
        kernel = key.partition(".")[0]
        made[key] = graphs.capture_or_restore(
            key,
            capture=lambda kernel=kernel, at=at: program.capture(kernel, 100 * at),  # type: ignore[misc]
            inputs={"out": program.out.value},
            spans=[Span(program.out.value, WORDS * 4, 0, 1000)] if ".blind" not in key else [],
        )
    commit()
    for key, graph in made.items():
        graph.launch(program.stream.value)
        # In one write, so that nothing of another process comes in between.
        os.write(1, f"{key} {program.numbers()[:3]}\n".encode())


if __name__ == "__main__":
    main()
