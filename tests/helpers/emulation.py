"""Tests of the native part for another processor, run by an emulator: `make aarch64`.

`CC` and `CXX` then name cross compilers, `FOUNDRY_LIBRARY_DIR` the libraries for that processor, and EMULATOR what runs
its programs. Where a test expects a program there stands one that starts the emulator with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

EMULATOR = "FOUNDRY_TEST_EMULATOR"
"""The emulator and the folder that its programs have for the root of their libraries, with a blank between them."""
FOLDER = "emulated"
SOURCE = Path(__file__).with_name("emulated.c")


def active() -> bool:
    """Tell whether programs are for another processor."""
    return bool(os.environ.get(EMULATOR))


def too_much(why: str) -> pytest.MarkDecorator:
    """Leave out a test that an emulator cannot run, or not in minutes."""
    return pytest.mark.skipif(active(), reason=f"not under an emulator: {why}")


def place(output: Path) -> Path:
    """Say where to put a program that is to be run as `output`: there, unless it needs the emulator."""
    if not active():
        return output
    emulator, libraries = os.environ[EMULATOR].split()
    folder = output.parent / FOLDER
    folder.mkdir(exist_ok=True)
    defined = {"EMULATOR": shutil.which(emulator) or emulator, "LIBRARIES": libraries, "FOLDER": FOLDER}
    options = [f'-D{name}="{value}"' for name, value in defined.items()]
    subprocess.run(["gcc", "-static", "-O1", *options, SOURCE, "-o", output], check=True)
    return folder / output.name
