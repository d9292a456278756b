"""Runs a kernel through `cuda.bindings`: launched, captured, replayed. Argument: an image of sim_kernels.c."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver


def check(result: tuple[Any, ...]) -> Any:
    """Give the values of a driver call, or raise."""
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{error!r}")
    return values[0] if len(values) == 1 else values


def main(image: Path) -> None:
    """Check eager launch, capture and replay against numpy."""
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    library = check(driver.cuLibraryLoadData(image.read_bytes(), [], [], 0, [], [], 0))
    kernel = check(driver.cuLibraryGetKernel(library, b"vector_add"))
    function = check(driver.cuKernelGetFunction(kernel))

    count = 1000
    rng = np.random.default_rng(1)
    a, b = (rng.random(count, dtype=np.float32) for _ in range(2))
    out = np.zeros(count, dtype=np.float32)
    stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    d_out, d_a, d_b = (check(driver.cuMemAlloc(a.nbytes)) for _ in range(3))
    check(driver.cuMemcpyHtoD(d_a, a, a.nbytes))
    check(driver.cuMemcpyHtoD(d_b, b, b.nbytes))

    values = [np.array([int(p)], dtype=np.uint64) for p in (d_out, d_a, d_b)] + [np.array([count], dtype=np.uint32)]
    arguments = np.array([v.ctypes.data for v in values], dtype=np.uint64)

    def launch() -> None:
        check(driver.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, arguments.ctypes.data, 0))

    def result() -> np.ndarray[Any, Any]:
        check(driver.cuStreamSynchronize(stream))
        check(driver.cuMemcpyDtoH(out, d_out, out.nbytes))
        return out

    launch()
    np.testing.assert_array_equal(result(), a + b)

    check(driver.cuMemsetD8(d_out, 0, out.nbytes))
    check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    launch()
    graph = check(driver.cuStreamEndCapture(stream))
    np.testing.assert_array_equal(result(), np.zeros(count, dtype=np.float32))
    graph_exec = check(driver.cuGraphInstantiate(graph, 0))
    a *= 3
    check(driver.cuMemcpyHtoD(d_a, a, a.nbytes))
    check(driver.cuGraphLaunch(graph_exec, stream))
    np.testing.assert_array_equal(result(), a + b)
    check(driver.cuGraphExecDestroy(graph_exec))
    check(driver.cuGraphDestroy(graph))
    check(driver.cuLibraryUnload(library))
    check(driver.cuDevicePrimaryCtxRelease(device))
    name = check(driver.cuDeviceGetName(64, device))
    print(name.split(b"\0")[0].decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
