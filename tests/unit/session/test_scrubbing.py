"""What a run without noise told of each graph, and a run that does not end."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.proving import FIRST, Program
from helpers.spool_writer import SpoolWriter

from foundry.model import Capture
from foundry.session import again, scrubbing
from foundry.session.capture_run import STOP_SECONDS, Request
from foundry.session.listener import Listener
from foundry.session.scrubbing import Answer

ROLE = "python-0"
ONE, TWO = (ROLE, "decode", "1"), (ROLE, "decode", "2")
WITNESS = {"witness": {"found": {"out": "12"}}}


def captured(*metadata: object) -> Capture:
    """A process with graphs 1 and 2 of the set `decode`, with this metadata."""
    capture = Program(FIRST).captured()[0]
    (process,) = capture.processes
    graphs = [
        replace(graph, metadata=text if isinstance(text, str) else json.dumps(text))
        for graph, text in zip(process.graphs, metadata, strict=True)
    ]
    return replace(capture, processes=(replace(process, graphs=tuple(graphs)),))


def judged(answer: Answer, *metadata: object) -> dict[int, str]:
    return {at: why for (_, at), why in scrubbing.judged(captured(*(metadata or (WITNESS, WITNESS))), answer).items()}


def answer(*handed: tuple[str, str, str], equal: int, **reasons: str) -> Answer:
    return Answer(
        "", {ROLE: frozenset(handed)}, {ROLE: equal}, {(ROLE, "decode", key[1:]): why for key, why in reasons.items()}
    )


def test_graphs_that_were_handed_and_equal_need_no_noise() -> None:
    assert judged(answer(ONE, TWO, equal=2)) == {}
    assert judged(answer(ONE, equal=1, _2="differs")) == {1: "differs"}
    assert judged(answer(ONE, equal=1)) == {1: scrubbing.NOT_ASKED}


def test_a_reason_for_all_is_one_for_each() -> None:
    assert judged(Answer("it failed")) == {0: "it failed", 1: "it failed"}
    assert judged(Answer()) == {0: scrubbing.NOT_ASKED, 1: scrubbing.NOT_ASKED}


@pytest.mark.parametrize("equal", [0, 1, 3])
def test_where_the_counts_do_not_agree_nothing_is_concluded(equal: int) -> None:
    assert judged(answer(ONE, TWO, equal=equal)) == {0: scrubbing.NOT_TOLD, 1: scrubbing.NOT_TOLD}


@pytest.mark.parametrize("metadata", ["", "{", "[1]", {"witness": {"missing": "x"}}, {"witness": 1}, {}])
def test_a_graph_that_was_handed_without_a_witness_was_not_compared(metadata: object) -> None:
    found = judged(answer(ONE, TWO, equal=2), metadata, WITNESS)
    assert found == {0: scrubbing.NO_WITNESS}


def test_the_answer_is_what_the_processes_told(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, ROLE, mode=2)
    spool.restored(("decode", "1"), 1)
    spool.restored(("decode", "2"), 1)
    spool.restored(("decode", "2"), 0, "witness-differs: out")
    spool.counters(witness_equal=1)
    spool.end()
    spool.write()
    found = scrubbing.answer_of(tmp_path)
    assert found == Answer("", {ROLE: frozenset({ONE})}, {ROLE: 1}, {TWO: "without noise: witness-differs: out"})


def test_a_run_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    sent: list[Any] = []
    supervisor: Any = SimpleNamespace(stop=lambda number=signal.SIGTERM: sent.append(number))
    workspace: Any = SimpleNamespace(folder=tmp_path, spool=tmp_path, status=tmp_path / "status")
    run = again._Third(Request(["x"]), workspace, 30.0, Listener())
    for seconds, late, count in ((0, False, 0), (29, False, 0), (31, True, 1), (32, True, 1)):
        now[0] = 100.0 + seconds
        assert run.tick(supervisor) is not None
        assert (run.late, len(sent)) == (late, count)
    now[0] += STOP_SECONDS
    run.tick(supervisor)
    assert sent == [signal.SIGTERM, signal.SIGKILL]
