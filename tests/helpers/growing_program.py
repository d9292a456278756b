"""A program that captures a graph for each key that it is given, on the driver API, and tells what its graphs gave.

The keys stand in a file, as clients would ask for them: the command is the same in each run. `+N` there allocates N
bytes first, as a program would that is not the one that was captured.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import Any

from cuda.bindings import driver

from foundry.graphs import GraphSet, commit

WORDS = 64
SIZES = ("4", "8", "16", "32")
AS_TORCH_DOES = 1 | 8
"""Memory of a graph is freed at its next launch, and nodes have priorities: flags of an instantiation."""


def check(result: Any) -> Any:
    error, *values = result
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys-file", required=True, help="where the keys stand: what clients asked for")
    parser.add_argument("--static", action="store_true", help="have the memory for all keys from the start")
    parser.add_argument("--serve", action="store_true", help="until SIGTERM")
    parser.add_argument("--exit", type=int, default=0)
    chosen = parser.parse_args()
    words = Path(chosen.keys_file).read_text(encoding="ascii").split()
    keys = [word for word in words if word.isdigit()]
    more = [word for word in words if word.startswith("+")]
    check(driver.cuInit(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))))
    stream = check(driver.cuStreamCreate(1))
    if more:
        check(driver.cuMemAlloc(int(more[0])))
    buffer = int(check(driver.cuMemAlloc(4 * WORDS)))
    held = {key: int(check(driver.cuMemAlloc(4 * int(key)))) for key in SIZES} if chosen.static else {}
    graphs = GraphSet("grown")
    outputs, restored = {}, []
    for key in keys:
        own = held.get(key) or int(check(driver.cuMemAlloc(4 * int(key))))

        def capture(key: str = key, own: int = own) -> Any:
            mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
            check(driver.cuStreamBeginCapture(stream, mode))
            check(driver.cuMemsetD32Async(own, 100 + int(key), int(key), stream))
            check(driver.cuMemcpyDtoDAsync(buffer, own, 4 * int(key), stream))
            made = check(driver.cuStreamEndCapture(stream))
            executable = check(driver.cuGraphInstantiate(made, AS_TORCH_DOES))
            return lambda handle: check(driver.cuGraphLaunch(executable, handle))

        graph = graphs.capture_or_restore(key, capture=capture, inputs={"buffer": buffer, "own": own})
        check(driver.cuMemsetD32(buffer, 0, WORDS))
        graph.launch(int(stream))
        check(driver.cuStreamSynchronize(stream))
        data = bytearray(4 * WORDS)
        check(driver.cuMemcpyDtoH(data, buffer, len(data)))
        outputs[key] = sum(memoryview(data).cast("I"))
        if graph.restored:
            restored.append(key)
    commit()
    print(json.dumps({"outputs": outputs, "restored": restored}), flush=True)
    if chosen.serve:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.pause()
    raise SystemExit(chosen.exit)


if __name__ == "__main__":
    main()
