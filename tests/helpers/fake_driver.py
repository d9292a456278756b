"""A driver for caches of graphs that runs passes as lists of Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from helpers.fake_hook import FakeHook

from foundry.keyed.driver import OUT_OF_MEMORY, CallError, Record
from foundry.witness import Span

Launch = tuple[str, Callable[[], None]]


@dataclass
class FakeDriver:
    """Stands in for `foundry.keyed.driver.Driver`; `launch_now` is what a pass calls."""

    hook: FakeHook = field(default_factory=FakeHook)
    free: int = 1 << 40
    room: int = 1 << 30
    """Execs that may be alive before instantiation runs out of memory."""
    refuses: bool = False
    events: list[str] = field(default_factory=list)
    execs: dict[int, list[Launch]] = field(default_factory=dict)
    graphs: dict[int, list[Launch]] = field(default_factory=dict)
    recording: list[Launch] | None = None
    number: int = 0

    def put(self, name: str, work: Callable[[], None]) -> None:
        """Launch a kernel: at once, or into the recording."""
        if self.recording is not None:
            self.recording.append((name, work))
        else:
            self.events.append(f"eager {name}")
            work()

    def record(self, stream: int, record: Record) -> int:
        self.recording = []
        try:
            record(stream)
            self.number += 1
            self.graphs[self.number] = self.recording
        finally:
            self.recording = None
        return self.number

    def instantiate(self, graph: int) -> int:
        if len(self.execs) >= self.room:
            raise CallError("cuGraphInstantiateWithFlags", OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY")
        self.hook.instantiate()
        self.number += 1
        self.execs[self.number] = list(self.graphs[graph])
        self.events.append("instantiate")
        return self.number

    def update(self, executable: int, graph: int) -> str | None:
        names = [[name for name, _ in launches] for launches in (self.execs[executable], self.graphs[graph])]
        if self.refuses or names[0] != names[1]:
            self.events.append("refuse")
            return "other nodes or edges"
        self.execs[executable] = list(self.graphs[graph])
        self.events.append("update")
        return None

    def launch(self, executable: int, stream: int) -> None:
        self.events.append(f"launch on {stream}")
        for _, work in self.execs[executable]:
            work()

    def drop_graph(self, graph: int) -> None:
        del self.graphs[graph]

    def drop_exec(self, executable: int) -> None:
        del self.execs[executable]
        self.events.append("drop")

    def wait(self, stream: int) -> None:
        self.events.append("wait")

    def free_memory(self) -> int:
        return self.free

    def clear_error(self) -> None:
        self.events.append("clear error")


class FakeEngine:
    """Adds `amount` to the first `rows` numbers of its state, and twice where there are many rows."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.numbers = [0] * 8
        self.blind = False
        """Passes that ignore `amount`."""

    def pass_of(self, key: Mapping[str, Any]) -> Record:
        """Give what puts the pass of a key on a stream."""
        rows, amount = int(key["rows"]), 1 if self.blind else int(key["amount"])

        def add() -> None:
            for row in range(rows):
                self.numbers[row] += amount

        def record(stream: int) -> None:
            for at in range(1 + (rows > 4)):
                self.driver.put(f"add {at}", add)

        return record

    # Memory, for comparisons: a byte a number.
    def read(self, address: int, size: int) -> bytes:
        return bytes(number % 256 for number in self.numbers[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        self.numbers[address : address + len(data)] = list(data)

    def wait(self) -> None:
        pass

    @property
    def state(self) -> dict[str, Span]:
        return {"numbers": Span(0, len(self.numbers))}
