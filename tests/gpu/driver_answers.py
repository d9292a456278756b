"""What the driver answers to questions about memory that is gone or was never there: the real one, and the simulator.

    python tests/gpu/driver_answers.py          # prints the answers of this process's driver as JSON

`driver_answers` runs it plainly and under `foundry capture`, and compares with what the simulator answers. A real
driver that answers otherwise is a fault of the simulator; a hooked process that is answered otherwise is the hook's.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SMALL, LARGE = 1000, 8 << 20
MEMORY_TYPE, RANGE_START = 2, 11

SIMULATED = {
    "range of the start": 0, "range of the last byte": 0, "range of the byte behind": 500,
    "range after free": 500, "range of small memory after free": 500, "range of nothing": 500, "range of null": 500,
    "memory type": 0, "memory type after free": 1, "memory type of host memory": 1, "range start after free": 1,
    "free of the middle": 1, "free": 0, "free again": 1, "free of null": 0,
}  # fmt: skip
"""The simulator's answers, as CUresult."""


def answers() -> dict[str, int]:
    """Ask this process's driver."""
    driver: Any = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    for result in (
        driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0),
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), driver.cuCtxSetCurrent(context),
    ):  # fmt: skip
        if result:
            sys.exit(f"no context: CUresult {result}")

    def take(size: int) -> int:
        address = ctypes.c_uint64()
        if driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
            sys.exit("no memory")
        return address.value

    def span(address: int) -> int:
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        asked = ctypes.c_uint64(address)
        return int(driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), asked))

    def attribute(which: int, address: int) -> int:
        value = ctypes.c_uint64()
        return int(driver.cuPointerGetAttribute(ctypes.byref(value), which, ctypes.c_uint64(address)))

    def free(address: int) -> int:
        return int(driver.cuMemFree_v2(ctypes.c_uint64(address)))

    host = ctypes.create_string_buffer(64)
    large, small, kept = take(LARGE), take(SMALL), take(LARGE)
    found = {
        "range of the start": span(large), "range of the last byte": span(large + LARGE - 1),
        "range of the byte behind": span(small + SMALL), "range of nothing": span(0x123400000),
        "range of null": span(0), "memory type": attribute(MEMORY_TYPE, large),
        "memory type of host memory": attribute(MEMORY_TYPE, ctypes.addressof(host)),
        "free of the middle": free(kept + 4096), "free": free(large), "free of null": free(0),
    }  # fmt: skip
    free(small)
    return found | {
        "range after free": span(large), "range of small memory after free": span(small),
        "memory type after free": attribute(MEMORY_TYPE, large),
        "range start after free": attribute(RANGE_START, large),
        "free again": free(large),
    }  # fmt: skip


def driver_answers(folder: Path, *flags: str) -> dict[str, Any]:
    """Ask plainly and under the hook, and compare; `flags` go to `foundry capture`."""
    from scenarios import FOUNDRY, run

    program = [sys.executable, HERE / "driver_answers.py"]
    plain = json.loads(run(folder, "plain", program))
    command = [*FOUNDRY, "capture", *flags, "-q", "-f", "-o", folder / "answers.fdry", "--", *program]
    hooked = json.loads(run(folder, "hooked", command))
    problems = [
        f"{name}: {who} answers {given[name]}, {other} {wanted[name]}"
        for who, given, other, wanted in (
            ("the driver", plain, "the simulator", SIMULATED),
            ("a hooked driver", hooked, "the driver", plain),
        )
        for name in SIMULATED
        if given[name] != wanted[name]
    ]
    (folder / "answers.json").write_text(json.dumps({"plain": plain, "hooked": hooked, "problems": problems}, indent=1))
    assert not problems, "; ".join(problems)
    return {"answers": plain}


if __name__ == "__main__":
    json.dump(answers(), sys.stdout)
