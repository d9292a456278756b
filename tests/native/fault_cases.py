"""Runs one program again and again, each time with another driver call failing, and judges what became of it.

A fault is `function:nth:error`. Plain runs say what the program itself makes of a function that fails like that; under
the hook it must end as without a fault, or in one of these ways.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from zlib import crc32

from helpers.native_build import hooked_environment, sanitized

from foundry import image
from foundry.pack import pack

PATIENCE = 60
FAULTS = "ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:", "WARNING: ThreadSanitizer"
# What a program asks for when the hook asks for something else in its place, and passes the answer on.
ASKED_FOR = {"cuCtxSynchronize": "cuMemFree_v2"}
ERRORS = (2, 46, 201, 400, 700, 719, 801, 802, 999)
"""Out of memory, device unavailable, invalid context and handle, illegal address, launch failure, not supported, system
not ready, unknown."""
CONTRADICTIONS = {("cuStreamIsCapturing", 201), ("cuStreamIsCapturing", 400)}
"""What a driver says of a stream that is none; the hook believes it, and leaves the call with that stream to it."""
RELEASING = ("Destroy", "Unload", "Free", "Release", "Unmap", "PopCurrent", "Unregister")


@dataclass(frozen=True)
class Ending:
    """How a run ended, with what the simulator counted in it."""

    code: int
    output: str
    errors: str
    status: str
    session: Path
    calls: dict[str, int] = field(compare=False)
    alive: dict[str, int] = field(compare=False)

    @property
    def result(self) -> tuple[int, str]:
        """What the program itself can tell of the run."""
        return self.code, self.output


class Subject:
    """A program, and the folder in which its runs leave what they leave."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.command = command
        self.folder = folder
        self._plain: dict[str, set[tuple[int, str]]] = {}
        self._asking = Lock()

    def run(self, name: str, mode: str | None, **environment: str) -> Ending:
        """Run it once; a hang ends as -1."""
        session = self.folder / name
        session.mkdir()
        report = session / "report"
        options = hooked_environment(mode, session) | {"FOUNDRY_QUIET": "1", "FOUNDRY_SIM_REPORT": str(report)}
        if sanitized():
            options["ASAN_OPTIONS"] += ":detect_leaks=1"
        try:
            done = subprocess.run(
                self.command, env=options | environment, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            return Ending(-1, "", "it hangs", "", session, {}, {})
        status = session / "status"
        counts: dict[str, dict[str, int]] = {"calls": {}, "alive": {}}
        for line in report.read_text().splitlines() if report.exists() else ():
            kind, what, number = line.split()
            counts[kind][what] = int(number)
        told = status.read_text() if status.exists() else ""
        return Ending(done.returncode, done.stdout, done.stderr, told, session, counts["calls"], counts["alive"])

    @cached_property
    def plain(self) -> Ending:
        """A run without the hook."""
        return self.run("plain", None)

    def plain_results(self, function: str, on: str, error: str) -> set[tuple[int, str]]:
        """Every way in which the program ends by itself when that function fails once, or from some call on."""
        how = f"{on}:{error}"
        with self._asking:
            if function + how not in self._plain:
                faults = [f"{function}:{nth + 1}{how}" for nth in range(self.plain.calls.get(function, 0))]
                runs = [self.run(f"plain-{fault}", None, FOUNDRY_SIM_FAIL=fault) for fault in faults]
                self._plain[function + how] = {run.result for run in runs}
            return self._plain[function + how]

    def judge(self, fault: str, ending: Ending, usual: Ending) -> Iterator[str]:
        """Say what is wrong with how a run under the hook ended; `usual` is one without a fault."""
        function, which, error = fault.split(":")
        on = "+" if which.endswith("+") else ""
        if any(word in ending.errors for word in FAULTS):
            yield ending.errors[-3000:]
        if ending.result == self.plain.result:
            allowed = dict(usual.alive)
        elif any(
            ending.result in self.plain_results(name, on, error) for name in (function, ASKED_FOR.get(function, ""))
        ):
            allowed = dict(usual.alive)
            for kind, number in self._plain_alive(function).items():
                allowed[kind] = allowed.get(kind, 0) + number
        else:
            yield f"ends as no plain run does: {ending.code} {ending.output[-600:]}{ending.errors[-600:]}"
            return
        if any(word in function for word in RELEASING):
            more = 1000 if on else 1
            allowed = {kind: allowed.get(kind, 0) + more for kind in {**allowed, **ending.alive}}
        of_context = ("event", "module", "memory") if "primary-context" in ending.alive else ()
        for kind, number in ending.alive.items():
            if number > allowed.get(kind, 0) and kind not in of_context:
                yield f"{number} of {kind} are left, without the fault {usual.alive.get(kind, 0)}"

    def _plain_alive(self, function: str) -> dict[str, int]:
        most: dict[str, int] = {}
        for folder in self.folder.glob(f"plain-{function}:*"):
            report = folder / "report"
            for line in report.read_text().splitlines() if report.exists() else ():
                kind, what, number = line.split()
                if kind == "alive":
                    most[what] = max(most.get(what, 0), int(number))
        return most


def cases(calls: Mapping[str, int], what: str) -> list[str]:
    """The first, the second and the last call of each function, and all from the second on.

    With FOUNDRY_FAULTS=every, every single call. Which error a function gives is drawn for each; FOUNDRY_FAULT_SEED
    draws others.
    """
    every = os.environ.get("FOUNDRY_FAULTS") == "every"
    seed = os.environ.get("FOUNDRY_FAULT_SEED", "0")
    found = []
    for function in sorted(calls):
        errors = [error for error in ERRORS if (function, error) not in CONTRADICTIONS]
        error = errors[crc32(f"{seed} {what} {function}".encode()) % len(errors)]
        last = calls[function]
        chosen = range(1, last + 1) if every else (*sorted({1, min(2, last), last}), "2+")
        found += [f"{function}:{which}:{error}" for which in chosen]
    return found


def judge_all(faults: list[str], judge: Callable[[str], Iterable[str]], at_once: int = 2) -> None:
    """Judge cases some at a time, and fail with all complaints, each with its fault."""

    def one(fault: str) -> list[str]:
        try:
            return [f"{fault}: {complaint}" for complaint in judge(fault)]
        except Exception as error:
            return [f"{fault}: {error!r}"]

    with ThreadPoolExecutor(at_once) as pool:
        complaints = [complaint for found in pool.map(one, faults) for complaint in found]
    assert not complaints, "\n".join(["", f"{len(complaints)} complaints in {len(faults)} cases", *complaints])


def build_images(session: Path, folder: Path) -> Path:
    """Pack what a capture left and build what a restore maps."""
    capture, _ = pack(session)
    folder.mkdir()
    for process in capture.processes:
        image.build(capture, process.role, folder / f"{process.role}.image", "00" * 32)
    return folder
