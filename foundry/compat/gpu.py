"""The GPUs of this machine, as the kernel module tells them, without touching CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from foundry import env

DRIVER_FOLDER = Path("/proc/driver/nvidia")
SIMULATED_MODEL = "NVIDIA Simulated H200"


def models(folder: Path = DRIVER_FOLDER) -> list[str]:
    """Name the model of each GPU; empty if it cannot be known."""
    found = []
    try:
        entries = sorted((folder / "gpus").iterdir())
    except OSError:
        return []
    for entry in entries:
        try:
            text = (entry / "information").read_text(errors="replace")
        except OSError:
            continue
        found += [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("Model:")]
    return found


def driver_version(folder: Path = DRIVER_FOLDER) -> str:
    """Tell the version of the kernel module, such as 580.159.04; empty if there is none."""
    try:
        words = (folder / "version").read_text(errors="replace").split("\n", 1)[0].split()
    except OSError:
        return ""
    return next((word for word in words if word[:1].isdigit() and "." in word), "")


def expected_models(environment: Mapping[str, str], *, simulated: bool) -> list[str]:
    """Name the models that a command started here would see; empty if they cannot be known."""
    if simulated:
        return [environment.get(env.SIMULATOR_GPU, "").split(":")[0] or SIMULATED_MODEL]
    return models()
