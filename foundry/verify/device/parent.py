"""Starts the fresh processes, listens to them, and ends those that hang."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from foundry.findings import (
    VERIFY_DEVICE_CRASH,
    VERIFY_DEVICE_HANG,
    VERIFY_DEVICE_MEMORY,
    VERIFY_DEVICE_MODEL,
    VERIFY_DEVICE_NONE,
    VERIFY_DEVICE_RANGE,
    Severity,
)
from foundry.verify.report import Place, Problem

FAILED = "failed"
NOT_REACHED = "not reached"
OF_THE_MACHINE = (VERIFY_DEVICE_NONE, VERIFY_DEVICE_MODEL, VERIFY_DEVICE_RANGE, VERIFY_DEVICE_MEMORY)
MOST_STARTS = 16
"""Fresh processes for one process of an archive: each follows one that a graph has ended."""
GRACE_SECONDS = 5.0
_TAIL = 2000


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a graph and why.

    `built`, `launched`, `failed`, `skipped` (it cannot be restored), `outside` (a thin archive lacks kernels of it) or
    `not reached`.
    """

    process: str
    graph: tuple[str, str]
    outcome: str
    text: str = ""
    nodes: int = 0
    edges: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "process": self.process,
            "graph": {"set": self.graph[0], "key": self.graph[1]},
            "outcome": self.outcome,
            "text": self.text,
            "nodes": self.nodes,
            "edges": self.edges,
            "seconds": self.seconds,
        }


@dataclass(slots=True)
class DeviceReport:
    """What the checks on a GPU found."""

    simulated: bool = False
    driver: int = 0
    devices: list[str] = field(default_factory=list)
    graphs: list[Checked] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def lacking(self) -> bool:
        """Whether the archive lacks what some graphs need."""
        return any(graph.outcome == "outside" for graph in self.graphs)

    @property
    def only_the_machine(self) -> bool:
        """Whether all that is wrong is that this machine is not one for these graphs."""
        return all(problem.code in OF_THE_MACHINE for problem in self.problems)

    def count(self, outcome: str) -> int:
        """Count the graphs with that outcome."""
        return sum(graph.outcome == outcome for graph in self.graphs)

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "sound": self.sound,
            "simulated": self.simulated,
            "driver": self.driver,
            "devices": self.devices,
            "graphs": [graph.as_dict() for graph in self.graphs],
            "problems": [problem.as_dict() for problem in self.problems],
        }


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be checked and how: `seconds` is how long a graph, or anything else, may take."""

    archive: Path
    environment: Mapping[str, str]
    launching: bool = False
    seconds: float = 60.0


def check_process(
    request: Request, number: int, role: str, graphs: list[tuple[str, str]], report: DeviceReport
) -> None:
    """Check the graphs of one process of the archive; those that follow one that ends its process get a new one."""
    first = 0
    for _ in range(MOST_STARTS):
        first = _Child(request, number, role, graphs, report).run(first)
        if first >= len(graphs):
            return
    report.graphs += [Checked(role, name, NOT_REACHED, "too many graphs before it failed") for name in graphs[first:]]


class _Child:
    """One fresh process."""

    def __init__(
        self, request: Request, number: int, role: str, graphs: list[tuple[str, str]], report: DeviceReport
    ) -> None:
        self._request = request
        self._number = number
        self._role = role
        self._graphs = graphs
        self._report = report
        self._open: int | None = None
        self._next = 0
        self._stage = "at its start"
        self._ended = False

    def run(self, first: int) -> int:
        """Check from the first graph on, and give the graph to go on with."""
        self._next = first
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                self._words(first, writing),
                env=_environment(self._request.environment),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=(writing,),
                start_new_session=True,
            )
            os.close(writing)
            try:
                for line in self._lines(reading):
                    self._take(line)
                self._finish(_status(child), errors)
            except TimeoutError:
                self._broken(VERIFY_DEVICE_HANG, f"nothing came of it within {self._request.seconds:g} s")
            finally:
                os.close(reading)
                _end(child)
        return self._next

    def _words(self, first: int, writing: int) -> list[str]:
        request = self._request
        return [
            sys.executable,
            "-m",
            "foundry.verify.device",
            str(request.archive.absolute()),
            str(self._number),
            str(first),
            str(request.seconds),
            "1" if request.launching else "0",
            str(writing),
        ]

    def _lines(self, reading: int) -> Iterator[dict[str, Any]]:
        """Give what the child tells, line by line. TimeoutError if it tells nothing for too long."""
        buffer = b""
        # A launch has its own limit in the child, which says more than that nothing came.
        limit = self._request.seconds + (GRACE_SECONDS if self._request.launching else 0)
        until = time.monotonic() + limit
        while True:
            ready, _, _ = select.select([reading], [], [], max(until - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            data = os.read(reading, 1 << 16)
            if not data:
                return
            until = time.monotonic() + limit
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                yield json.loads(line)

    def _take(self, line: dict[str, Any]) -> None:
        kind, report = line["kind"], self._report
        if kind == "ready":
            report.simulated, report.driver, report.devices = line["simulated"], line["driver"], line["devices"]
            self._stage = "loading images"
        elif kind == "begin":
            self._open = line["index"]
        elif kind == "problem":
            report.problems.append(Problem(line["code"], Severity.ERROR, line["text"], Place.from_dict(line["place"])))
        elif kind == "graph":
            name = self._graphs[line["index"]]
            values = (line[field] for field in ("outcome", "text", "nodes", "edges", "seconds"))
            report.graphs.append(Checked(self._role, name, *values))
            self._open, self._next = None, line["index"] + 1
        elif kind == "fatal":
            report.problems.append(Problem(line["code"], Severity.ERROR, line["text"], Place(self._role)))
            self._give_up(line["text"])
        elif kind == "done":
            self._ended, self._next = True, len(self._graphs)

    def _give_up(self, text: str) -> None:
        self._report.graphs += [Checked(self._role, name, NOT_REACHED, text) for name in self._graphs[self._next :]]
        self._ended, self._next = True, len(self._graphs)

    def _finish(self, status: int | None, errors: IO[bytes]) -> None:
        """Say what is wrong where the child ended in the middle of something."""
        if self._ended or (self._open is None and self._next and status == 0):
            return
        errors.seek(0, os.SEEK_END)
        errors.seek(max(errors.tell() - _TAIL, 0))
        told = [line for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
        how = _ending(status)
        self._broken(VERIFY_DEVICE_CRASH, f"{how}: {told[-1].strip()}" if told else how)

    def _broken(self, code: str, text: str) -> None:
        """Blame the graph at hand and go on behind it; with none at hand there is nothing to go on with."""
        if self._open is None:
            text = f"{text}, {self._stage}"
            self._report.problems.append(Problem(code, Severity.ERROR, text, Place(self._role)))
            self._give_up(text)
            return
        name = self._graphs[self._open]
        self._report.problems.append(Problem(code, Severity.ERROR, text, Place(self._role, name)))
        self._report.graphs.append(Checked(self._role, name, FAILED, text))
        self._next = self._open + 1


def _environment(base: Mapping[str, str]) -> dict[str, str]:
    """Have the child find the same modules."""
    paths = [str(Path(path).absolute()) for path in sys.path if path]
    return {**base, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def _status(child: subprocess.Popen[bytes]) -> int | None:
    try:
        return child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _ending(status: int | None) -> str:
    if status is None:
        return "its process does not end"
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and all that it started. One that hangs inside the kernel does not end; it is left alone."""
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    _status(child)
