"""Witnesses of programs on the driver API: spans of memory, a fake device."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from helpers.fake_hook import FakeHook

from foundry import env
from foundry.capi import Mode
from foundry.graphs import GraphSet, Span
from foundry.witness import LARGEST, LostError, seed_of
from foundry.witness.driver import filling

SIZE, OUT, TABLE, STATE = 64, 256, 512, 1024


class Device:
    """Memory as a string of bytes; the graph gives the sum of ids and table to `out` and counts in the state."""

    def __init__(self, table: int = 1) -> None:
        self.bytes = bytearray(2048)
        self.bytes[0:SIZE] = struct.pack("16i", *range(16))
        self.bytes[TABLE : TABLE + SIZE] = struct.pack("16i", *([table] * 16))
        self.writes = 0
        self.fail_after: int | None = None

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.bytes[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        self.writes += 1
        if self.fail_after is not None and self.writes > self.fail_after:
            raise RuntimeError("cuMemcpyHtoD_v2 failed with CUresult 700")
        self.bytes[address : address + len(data)] = data

    def wait(self) -> None:
        pass

    def words(self, address: int) -> list[int]:
        return list(struct.unpack("16i", self.read(address, SIZE)))

    def work(self, extra: int = 0) -> None:
        total = [one + other + extra for one, other in zip(self.words(0), self.words(TABLE), strict=True)]
        self.bytes[OUT : OUT + SIZE] = struct.pack("16i", *total)
        self.bytes[STATE] = (self.bytes[STATE] + 1) % 256


SPANS = (Span(0, SIZE, -5, 100), Span(OUT, SIZE, 0, 1), Span(TABLE, SIZE), Span(STATE, 4))


class Run:
    """A process: a capture, or a restore of what a capture left."""

    def __init__(self, mode: Mode, archive: Any = None, *, extra: int = 0, table: int = 1, spans: Any = SPANS) -> None:
        self.hook, self.device = FakeHook(mode, archive), Device(table)
        self.hook.kernels["8"] = lambda: self.device.work(extra)
        self.spans = spans
        self.before = bytes(self.device.bytes)
        self.graphs = GraphSet("decode", hook=self.hook, memory=self.device)

    def get(self, *, warm: bool = True) -> Any:
        def capture() -> Callable[[int], object]:
            self.hook.instantiate()
            return lambda stream: self.device.work()

        return self.graphs.capture_or_restore(
            8, capture=capture, warm_up=self.device.work if warm else None, spans=self.spans
        )


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(env.WITNESS, "1")
    run = Run(Mode.CAPTURE)
    run.get()
    monkeypatch.delenv(env.WITNESS)
    monkeypatch.setenv(env.CHECK, "1")
    return run.hook.archive


def test_a_witness_leaves_what_the_warm_up_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Run(Mode.CAPTURE)
    plain.get()
    monkeypatch.setenv(env.WITNESS, "1")
    run = Run(Mode.CAPTURE)
    run.get()
    assert run.device.bytes == plain.device.bytes
    assert run.hook.totals["witness_made"] == 1
    assert "scratch begin decode/8 witness" in run.hook.events
    witness = json.loads(run.hook.archive["decode", "8"])["witness"]
    assert witness["chosen"]["ranges"][0] == [-5, 100]
    assert len(set(witness["found"].values())) == 4
    assert "witness" not in json.loads(plain.hook.archive["decode", "8"])


def test_what_is_not_filled_is_that_from_before_the_warm_up(archive: Any) -> None:
    run = Run(Mode.RESTORE, archive)
    assert run.get().restored
    assert run.hook.totals["witness_equal"] == 1
    assert run.device.bytes == run.before


def test_another_result_gives_the_graph_up(archive: Any) -> None:
    run = Run(Mode.RESTORE, archive, extra=1)
    graph = run.get()
    assert not graph.restored
    assert graph.reason == "witness-differs: memory[1] is not what it was at the capture"
    assert run.hook.given_up == {"8": graph.reason}
    graph.launch(0)
    assert run.device.words(OUT) == list(range(1, 17))


def test_another_state_judges_nothing(archive: Any, caplog: pytest.LogCaptureFixture) -> None:
    run = Run(Mode.RESTORE, archive, extra=1, table=2)
    assert run.get().restored
    assert run.hook.totals == {**run.hook.totals, "witness_state": 1}
    assert "differs from the capture's in memory[2]" in caplog.text


def test_where_only_equal_graphs_may_be_used_the_others_are_given_up(
    archive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env.CHECK, env.CHECK_ONLY)
    assert Run(Mode.RESTORE, archive).get().restored
    run = Run(Mode.RESTORE, archive, table=2)
    graph = run.get()
    assert not graph.restored
    assert graph.reason == "witness-state: the state differs from the capture's in memory[2]"
    assert run.hook.given_up == {"8": graph.reason}
    assert run.hook.totals["witness_state"] == 1


def test_a_program_that_names_other_memory_is_not_compared(archive: Any) -> None:
    run = Run(Mode.RESTORE, archive, spans=(Span(0, SIZE, 0, 100), *SPANS[1:]))
    assert run.get().restored
    assert run.hook.totals["witness_state"] == 1


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ((), "names no memory"),
        ((Span(0, LARGEST + 1),), "is the most"),
        ((Span(0, 8, 3, 3),), "no range"),
        ((Span(0, 8, 3),), "no range"),
        ((Span(0, 8, 0, 1 << 40),), "no range"),
    ],
)
def test_memory_that_cannot_be_witnessed_is_told(monkeypatch: pytest.MonkeyPatch, spans: Any, reason: str) -> None:
    monkeypatch.setenv(env.WITNESS, "1")
    run = Run(Mode.CAPTURE, spans=spans)
    run.get()
    assert reason in json.loads(run.hook.archive["decode", "8"])["witness"]["missing"]


def test_memory_that_cannot_be_put_back_ends_the_program(archive: Any) -> None:
    run = Run(Mode.RESTORE, archive)
    run.device.fail_after = 4
    with pytest.raises(LostError, match="could not be put back"):
        run.get()


@pytest.mark.parametrize("size", [0, 1, 4, 65_524, 65_525, 300_000])
def test_fillings_lie_in_their_range_and_follow_the_seed(size: int) -> None:
    one = filling(1, -3, 4, size)
    assert (len(one), one) == (size, filling(1, -3, 4, size))
    if size >= 65_524:
        words = struct.unpack(f"{size // 4}i", one[: size // 4 * 4])
        assert set(words) == set(range(-3, 4))
        assert one != filling(2, -3, 4, size)


def test_seeds_differ_by_graph_and_not_by_run() -> None:
    assert seed_of("decode", "8") == seed_of("decode", "8") != seed_of("decode8", "")
