"""What this machine has for a capture or a restore. Touches no GPU and loads no driver."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from foundry import native
from foundry.compat import gpu, peer
from foundry.errors import FoundryError
from foundry.store import location

GOOD, WARN, BAD = "ok", "note", "bad"
LEAST_GLIBC = (2, 31)
_LOADER_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib",
)


@dataclass(frozen=True)
class Check:
    """One line of the answer."""

    what: str
    state: str
    found: str


def examine(environment: Mapping[str, str]) -> list[Check]:
    """Look at everything; never raises."""
    checks: list[Callable[[Mapping[str, str]], Check]] = [
        _machine,
        _glibc,
        _hook,
        _simulator,
        _driver_library,
        _driver,
        _gpus,
        _store,
        _peer,
        _preload,
    ]
    return [_safely(check, environment) for check in checks]


def _safely(check: Callable[[Mapping[str, str]], Check], environment: Mapping[str, str]) -> Check:
    try:
        return check(environment)
    except Exception as error:
        return Check(check.__name__.strip("_").replace("_", " "), BAD, f"{type(error).__name__}: {error}")


def _machine(_: Mapping[str, str]) -> Check:
    found = f"{platform.system()} {platform.release()}, {platform.machine()}, Python {platform.python_version()}"
    good = sys.platform == "linux" and platform.machine() == "x86_64"
    return Check("machine", GOOD if good else BAD, found)


def _glibc(_: Mapping[str, str]) -> Check:
    name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    version = tuple(int(part) for part in name.rpartition(" ")[2].split(".") if part.isdigit())
    return Check("C library", GOOD if version >= LEAST_GLIBC else BAD, name or "not glibc")


def _hook(_: Mapping[str, str]) -> Check:
    try:
        hook = native.Hook()
        return Check("hook", GOOD, f"{hook.path}, interface {hook.interface_version()}, {len(hook.table())} functions")
    except FoundryError as error:
        return Check("hook", BAD, str(error))


def _simulator(_: Mapping[str, str]) -> Check:
    try:
        return Check("simulator", GOOD, str(native.simulator_directory()))
    except FoundryError as error:
        return Check("simulator", WARN, str(error))


def _driver_library(environment: Mapping[str, str]) -> Check:
    named = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in (*named, *_LOADER_FOLDERS):
        path = Path(folder) / native.SIMULATOR_NAME
        if path.exists():
            return Check("driver library", GOOD, str(path.resolve()))
    return Check("driver library", WARN, f"no {native.SIMULATOR_NAME} found; `--sim` works without one")


def _driver(_: Mapping[str, str]) -> Check:
    version = gpu.driver_version()
    return Check("driver", GOOD if version else WARN, version or "no NVIDIA kernel module loaded")


def _gpus(_: Mapping[str, str]) -> Check:
    models = gpu.models()
    return Check("GPUs", GOOD if models else WARN, ", ".join(models) or "none")


def _store(environment: Mapping[str, str]) -> Check:
    place = location.find(environment)
    count = sum(1 for folder in place.folders for _ in folder.glob("*.fdry"))
    return Check("store", WARN if place.note else GOOD, place.note or f"{place.folder}, {count} archives")


def _peer(_: Mapping[str, str]) -> Check:
    warning = peer.warning(peer.thorough([entry for entry in sys.path if entry]))
    return Check("import name", BAD if warning else GOOD, warning or "`foundry` belongs to this package alone")


def _preload(environment: Mapping[str, str]) -> Check:
    entries = environment.get("LD_PRELOAD", "")
    return Check("LD_PRELOAD", GOOD, f"{entries}; kept, after the hook" if entries else "empty")
