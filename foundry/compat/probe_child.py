"""Asks the CUDA driver what it has, in a process of its own. Run as a script by `probe.py`; imports nothing of Foundry.

Makes no context and allocates nothing. Says on standard error what it is about to do, because it may not come back;
writes one JSON object to standard output.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import sys
from typing import Any

COMPUTE_MAJOR, COMPUTE_MINOR, MULTIPROCESSORS, COMPUTE_MODE, VIRTUAL_MEMORY = 75, 76, 16, 20, 102
NAME_BYTES = 256
NVML_NAME_BYTES = 96


class Refused(Exception):
    """The driver did not do what it was asked."""


def step(text: str) -> None:
    """Say what comes next."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


class Driver:
    """The calls that are needed of libcuda."""

    def __init__(self) -> None:
        step("loading libcuda.so.1")
        self._library: Any = ctypes.CDLL("libcuda.so.1")
        self.simulated = hasattr(self._library, "foundry_sim_version")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; Refused with the name of the error if it gives one."""
        step(name)
        function = getattr(self._library, name, None)
        if function is None:
            raise Refused(f"{name}: the driver does not have it")
        result = function(*arguments)
        if result:
            raise Refused(f"{name}: {self._error(result)}")

    def _error(self, result: int) -> str:
        text = ctypes.c_char_p()
        name = getattr(self._library, "cuGetErrorName", None)
        if name is None or name(result, ctypes.byref(text)) or not text.value:
            return f"error {result}"
        return text.value.decode(errors="replace")

    def attribute(self, which: int, device: ctypes.c_int) -> int:
        """Ask for a device attribute."""
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
        return value.value

    def device(self, ordinal: int) -> dict[str, Any]:
        """Tell all of one device."""
        handle = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(handle), ordinal)
        name = ctypes.create_string_buffer(NAME_BYTES)
        self.call("cuDeviceGetName", name, NAME_BYTES - 1, handle)
        uuid = (ctypes.c_ubyte * 16)()
        total = ctypes.c_size_t()
        try:
            self.call("cuDeviceGetUuid_v2", ctypes.byref(uuid), handle)
        except Refused:
            self.call("cuDeviceGetUuid", ctypes.byref(uuid), handle)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(total), handle)
        text = name.value.decode(errors="replace")
        return {
            "ordinal": ordinal,
            "name": text,
            "uuid": bytes(uuid).hex(),
            "compute_major": self.attribute(COMPUTE_MAJOR, handle),
            "compute_minor": self.attribute(COMPUTE_MINOR, handle),
            "multiprocessors": self.attribute(MULTIPROCESSORS, handle),
            "total_memory": total.value,
            "virtual_memory": bool(self.attribute(VIRTUAL_MEMORY, handle)),
            "compute_mode": self.attribute(COMPUTE_MODE, handle),
            "mig": "MIG" in text,
        }


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def ask_management(result: dict[str, Any]) -> None:
    """Add what only the management library tells. Nothing of it is needed."""
    step("loading libnvidia-ml.so.1")
    library: Any = ctypes.CDLL("libnvidia-ml.so.1")
    step("nvmlInit_v2")
    if library.nvmlInit_v2():
        return
    release = ctypes.create_string_buffer(NVML_NAME_BYTES)
    if not library.nvmlSystemGetDriverVersion(release, NVML_NAME_BYTES):
        result["release"] = release.value.decode(errors="replace")
    for device in result["devices"]:
        step("nvmlDeviceGetHandleByUUID")
        digits = device["uuid"]
        parts = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        handle = ctypes.c_void_p()
        kind = "MIG" if device["mig"] else "GPU"
        if library.nvmlDeviceGetHandleByUUID(f"{kind}-{parts}".encode(), ctypes.byref(handle)):
            continue
        memory = Memory()
        if not library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
            device["free_memory"] = memory.free
        mode = ctypes.c_uint()
        if not library.nvmlDeviceGetVirtualizationMode(handle, ctypes.byref(mode)):
            device["virtualization"] = mode.value


def main() -> None:
    """Ask step by step; what was learned before a failure is told with it."""
    result: dict[str, Any] = {"fault": "", "version": 0, "simulated": False, "release": "", "devices": []}
    try:
        driver = Driver()
        result["simulated"] = driver.simulated
        version = ctypes.c_int()
        driver.call("cuDriverGetVersion", ctypes.byref(version))
        result["version"] = version.value
        driver.call("cuInit", 0)
        count = ctypes.c_int()
        driver.call("cuDeviceGetCount", ctypes.byref(count))
        for ordinal in range(count.value):
            result["devices"].append(driver.device(ordinal))
        if not driver.simulated:
            with contextlib.suppress(OSError, AttributeError):
                ask_management(result)
    except (OSError, Refused) as error:
        result["fault"] = str(error)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
