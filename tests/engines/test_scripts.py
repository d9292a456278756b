"""Scripts on a stand-in for torch: a plain one is captured as always and told how it would come back; so it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.engine_starts import Engine

GRAPHS = 3
HINT = "foundry: torch: a graph is captured as always, since the body of `with torch.cuda.graph(...)` may do more"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path, "serve_script.py")


def test_a_plain_script_is_captured_as_always_and_the_report_says_why(engine: Engine) -> None:
    plain, talk = engine.capture()
    assert talk.count(HINT) == 1
    assert engine.sets() == {"": GRAPHS}
    told, report, talk = engine.restore()
    assert talk.count(HINT) == 1
    assert told == plain == engine.plain()
    assert (report["graphs_restored"], report["counters"]["stream_captures"]) == (0, GRAPHS)
    assert report["captured_as_always"] == [
        {"graphs": GRAPHS, "reason": "the body of `with torch.cuda.graph(...)` may do more than launch kernels"}
    ]


def test_two_lines_give_its_graphs_back(engine: Engine) -> None:
    plain, talk = engine.capture("--graph-set")
    assert engine.sets() == {"decode": GRAPHS}
    told, report, more = engine.restore("--graph-set")
    assert "captured as always" not in talk + more
    assert told["outputs"] == plain["outputs"] == engine.plain()["outputs"]
    assert (report["graphs_restored"], report["graphs_given_up"], told["runs"]) == (GRAPHS, 0, 0)
    assert report["captured_as_always"] == []
