"""The driver and the GPUs behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from foundry import native
from foundry.compat import gpu
from foundry.compat.library_files import LOADER_FOLDERS
from foundry.compat.probe import COMPUTE_MODES, VIRTUALIZED, Device
from foundry.session.doctor.check import GPU, Check, Surroundings, bad, good, note
from foundry.session.words import count

LEAST_VERSION = 12040
"""The first CUDA version whose driver tells the parameter layout of kernels."""
_PROHIBITED = 2


def driver_library(here: Surroundings) -> Iterator[Check]:
    """Tell which libcuda a program would load."""
    named = [folder for folder in here.environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in (*named, *LOADER_FOLDERS):
        path = (here.root / folder.lstrip("/") if folder in LOADER_FOLDERS else Path(folder)) / native.SIMULATOR_NAME
        if not path.exists():
            continue
        if "stubs" in path.parts or "stubs" in path.resolve().parts:
            hint = "take the folder out of `LD_LIBRARY_PATH`"
            yield bad("driver library", f"`{path}` is the toolkit's stub, which cannot run anything", hint, (GPU,))
        else:
            yield good("driver library", str(path.resolve()))
        return
    yield note("driver library", f"no {native.SIMULATOR_NAME} found", "install the NVIDIA driver", (GPU,))


def kernel_module(here: Surroundings) -> Iterator[Check]:
    """Tell the release of the kernel module, and whether this process may open its devices."""
    release = gpu.driver_version(here.root / "proc/driver/nvidia")
    if not release:
        yield note("kernel module", "no NVIDIA kernel module loaded", "`--sim` works without one", (GPU,))
    elif not here.present("dev/nvidiactl"):
        hint = "start the container with its GPUs: `docker run --gpus all`"
        yield bad("kernel module", f"{release}, but no device file `/dev/nvidiactl`", hint, (GPU,))
    else:
        yield good("kernel module", release)


def driver(here: Surroundings) -> Iterator[Check]:
    """Tell what the driver answered when it was asked in a process of its own."""
    machine = here.machine
    version = f"{machine.version // 1000}.{machine.version % 1000 // 10}"
    simulated = ", simulated" if machine.simulated else ""
    if machine.fault:
        absent = "cannot open shared object file" in machine.fault or not _has_module(here)
        if absent:
            yield note("driver", machine.fault, "`--sim` works without a driver", (GPU,))
        else:
            yield bad("driver", machine.fault, "`nvidia-smi` must work first", (GPU,))
    elif machine.version < LEAST_VERSION:
        hint = "install a driver for CUDA 12.4 or newer"
        yield bad("driver", f"CUDA {version}{simulated}: too old to tell the parameters of kernels", hint, (GPU,))
    else:
        release = f", release {machine.release}" if machine.release else ""
        yield good("driver", f"CUDA {version}{release}{simulated}; {count(len(machine.devices), 'GPU')}")


def gpus(here: Surroundings) -> Iterator[Check]:
    """Tell each GPU."""
    for device in here.machine.devices:
        yield _gpu(device)
    chosen = here.environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None and not here.machine.devices and _has_module(here):
        hint = "unset it, or name a GPU: `CUDA_VISIBLE_DEVICES=0`"
        yield bad("CUDA_VISIBLE_DEVICES", f"`{chosen}` leaves no GPU", hint, (GPU,))


def _gpu(device: Device) -> Check:
    what = f"GPU {device.ordinal}"
    free = f", {device.free_memory / (1 << 30):.1f} GiB free" if device.free_memory is not None else ""
    parts = [
        device.name,
        f"compute {device.compute_major}.{device.compute_minor}",
        f"{device.multiprocessors} multiprocessors",
        f"{device.total_memory / (1 << 30):.1f} GiB{free}",
    ]
    if device.mig:
        parts.append("a MIG slice")
    if device.virtualization in VIRTUALIZED:
        parts.append(VIRTUALIZED[device.virtualization])
    if device.compute_mode in COMPUTE_MODES:
        parts.append(f"compute mode {COMPUTE_MODES[device.compute_mode]}")
    found = ", ".join(parts)
    if not device.virtual_memory:
        hint = "vGPU profiles need unified memory enabled for it; a plain GPU has it"
        return bad(what, f"{found}: no virtual memory management, so addresses do not come back", hint, (GPU,))
    if device.compute_mode == _PROHIBITED:
        return bad(what, found, f"allow it: `nvidia-smi -i {device.ordinal} -c DEFAULT`", (GPU,))
    return good(what, found)


def _has_module(here: Surroundings) -> bool:
    return bool(gpu.driver_version(here.root / "proc/driver/nvidia"))
