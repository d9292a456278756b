"""What figures were measured on. Nothing here names the machine itself."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("foundry-graphs", "torch", "numpy", "zstandard", "typer", "rich")
SIMULATED = "simulated"


def facts(*, simulated: bool = False) -> dict[str, Any]:
    """Describe machine and versions. `simulated`: no GPU is asked for, as none is used."""
    found: dict[str, Any] = {
        "cores": len(os.sched_getaffinity(0)), "architecture": platform.machine(), "processor": processor(),
        "python": platform.python_version(), "kernel": platform.release().split("-")[0],
        "libc": " ".join(platform.libc_ver()),
    }  # fmt: skip
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found | ({"gpu": SIMULATED} if simulated else gpu())


def processor() -> str:
    """Name the processor's model, empty where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def gpu() -> dict[str, Any]:
    """Describe the first GPU, and say how many there are."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        lines = subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
        name, driver, memory = (part.strip() for part in lines[0].split(","))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        return {"gpu": f"unknown: {type(error).__name__}"}
    return {"gpu": name, "driver": driver, "gpu_memory": memory, "gpus": len(lines)}


def kind(found: dict[str, Any]) -> str:
    """Name the class of machine, as results are called by it: its GPU, or its cores where none was used."""
    if found["gpu"] == SIMULATED:
        return slug(f"{found['cores']} cores {found['architecture']}")
    return slug(str(found["gpu"]))


def slug(text: str) -> str:
    """Write a name so that it may stand in a file's."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
