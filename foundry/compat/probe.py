"""What the driver of this machine has, asked in a fresh process with a time limit and without a context.

A driver that hangs, crashes or is not there is an answer, not an exception.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 15.0
KILL_SECONDS = 2.0
_CHILD = Path(__file__).with_name("probe_child.py")
VIRTUALIZED = {1: "passed through to a virtual machine", 2: "a vGPU", 3: "host of vGPUs", 4: "host of shared graphics"}
COMPUTE_MODES = {2: "prohibited", 3: "exclusive to one process"}


@dataclass(frozen=True)
class Device:
    """A GPU as the driver shows it. `free_memory` and `virtualization` are None where they cannot be known."""

    ordinal: int
    name: str
    uuid: str
    compute_major: int
    compute_minor: int
    multiprocessors: int
    total_memory: int
    virtual_memory: bool
    compute_mode: int
    mig: bool
    free_memory: int | None = None
    virtualization: int | None = None


@dataclass(frozen=True)
class Machine:
    """What the driver said. `fault` tells why there is no more of it; empty if it answered everything.

    `version` is the CUDA version of the driver, 1000 x major + 10 x minor; `release` its own, such as 580.159.04.
    """

    fault: str = ""
    version: int = 0
    simulated: bool = False
    release: str = ""
    devices: tuple[Device, ...] = ()


def ask(environment: Mapping[str, str], *, seconds: float = SECONDS) -> Machine:
    """Ask the driver that a command with this environment would load. The environment should be free of the hook."""
    # -I and -S: the child must answer quickly, and nothing that a program's environment sets up may run in it.
    words = [sys.executable, "-I", "-S", str(_CHILD)]
    try:
        child = subprocess.Popen(
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Machine(fault=f"the driver cannot be asked: {error}")
    try:
        out, told = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        told = _killed(child)
        return Machine(fault=f"the driver did not answer within {seconds:g} s, in {_last(told)}")
    if child.returncode < 0:
        return Machine(fault=f"the driver crashed with {_signal(-child.returncode)}, in {_last(told)}")
    return _parsed(out, told)


def _killed(child: subprocess.Popen[bytes]) -> bytes:
    """End the child and give what it said. One that hangs inside the kernel does not end; it is left alone."""
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=KILL_SECONDS)[1]
    except subprocess.TimeoutExpired as error:
        return error.stderr or b""


def _last(told: bytes) -> str:
    lines = told.decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line), "its start")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _parsed(out: bytes, told: bytes) -> Machine:
    try:
        answer: dict[str, Any] = json.loads(out)
        devices = tuple(Device(**device) for device in answer.pop("devices"))
        return Machine(devices=devices, **answer)
    except (ValueError, TypeError, KeyError):
        return Machine(fault=f"the driver gave no answer that can be read, in {_last(told)}")
