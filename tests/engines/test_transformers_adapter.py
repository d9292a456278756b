"""Continuous batching of transformers on stand-ins for its seams, with the real hook on the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.engine_starts import Engine

WARM = 4
"""Shapes of the engine's warm-up."""


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(tmp_path, "serve_transformers.py")
    steps(made, "2 4 8")
    return made


def steps(engine: Engine, sizes: str) -> None:
    """What clients ask for: the command is the same."""
    (engine.line.work / "steps").write_text(sizes)


OPTIONS = ("--steps-file", "steps")


def captured(engine: Engine, *options: str, **environment: str) -> Any:
    return engine.capture(*OPTIONS, *options, **environment)


def restored(engine: Engine, *options: str, **environment: str) -> Any:
    return engine.restore(*OPTIONS, *options, **environment)


def plain(engine: Engine, *options: str) -> Any:
    done = engine.line.work / "steps"
    return engine.plain("--steps-file", str(done), *options)


@pytest.mark.parametrize(("options", "pairs"), [((), 1), (("--asynchronous",), 2)])
def test_every_graph_comes_back_without_a_run_of_the_model(
    engine: Engine, options: tuple[str, ...], pairs: int
) -> None:
    told, _ = captured(engine, *options)
    assert told["outputs"] == plain(engine, *options)["outputs"]
    sets = engine.sets()
    assert (sets["transformers/decode"], sets["transformers/varlen"]) == (3 * pairs, pairs)
    again, report, talk = restored(engine, *options)
    assert again["outputs"] == told["outputs"]
    assert (again["runs_before"], again["runs_while_serving"]) == (0, 0)
    assert (report["graphs_restored"], report["graphs_given_up"]) == (WARM * pairs, 0)
    counters = report["counters"]
    assert (counters["captures_skipped"], counters["warm_ups_skipped"]) == (WARM * pairs, WARM * pairs)
    assert counters["stream_captures"] == 0
    assert "captured as always" not in talk


def test_a_shape_that_comes_up_while_serving_gives_its_tokens_at_once(engine: Engine) -> None:
    steps(engine, "3 6")
    told, _ = captured(engine)
    assert (told["runs_before"], told["runs_while_serving"]) == (2 * WARM, 4)
    again, report, _ = restored(engine)
    assert again["outputs"] == told["outputs"] == plain(engine)["outputs"]
    assert (again["runs_while_serving"], report["graphs_restored"]) == (0, WARM + 2)


def test_shapes_of_a_later_run_are_added(engine: Engine) -> None:
    steps(engine, "3")
    captured(engine)
    steps(engine, "6 3 5")
    words = ("capture", "--sim", "--update", "a.fdry")
    done = engine.line.run(*words, *engine._command(OPTIONS), environment={"FOUNDRY_SIM_SEED": "77"})
    assert done.returncode == 0, done.stderr
    assert "foundry: 2 graphs added\n" in done.stderr
    steps(engine, "5 3 6 2")
    again, report, _ = restored(engine)
    assert again["outputs"] == plain(engine)["outputs"]
    assert (again["runs_while_serving"], report["graphs_restored"]) == (0, WARM + 3)


def test_without_a_warm_up_everything_is_captured_while_serving(engine: Engine) -> None:
    steps(engine, "3 6 3")
    told, _ = captured(engine, "--no-warmup")
    again, report, _ = restored(engine, "--no-warmup")
    assert again["outputs"] == told["outputs"]
    assert (again["runs_while_serving"], report["graphs_restored"]) == (0, 2)


def test_the_size_of_the_kv_cache_is_the_captures(engine: Engine) -> None:
    captured(engine)
    told, report, _ = restored(engine, "--free", "25")
    assert (told["blocks"], report["graphs_restored"]) == (20, WARM)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--asynchronous",), "another use_async_batching: recorded false, found true"),
        (("--temperature", "0.5"), "another processors[0]: recorded"),
        (("--layers", "3"), 'another model: recorded "'),
        (("--attention", "paged|eager"), 'another attention: recorded "paged|sdpa", found "paged|eager"'),
        (("--most-tokens", "8"), "another max_batch_tokens: recorded null, found 8"),
        (("--compiled",), "torch.compile of the step is not done yet"),
    ],
)
def test_another_start_is_refused_by_name_and_runs_plainly(
    engine: Engine, options: tuple[str, ...], reason: str
) -> None:
    captured(engine)
    told, report, talk = restored(engine, *options)
    assert f"transformers: graphs are captured as always: {reason}" in talk
    assert report["graphs_restored"] == 0
    assert told == plain(engine, *options)


def test_another_release_is_said_in_one_line(engine: Engine) -> None:
    told, talk = captured(engine, STAND_IN_VERSION="5.18.0")
    assert talk.count("version 5.18.0 is not known, only 5.17.0") == 1
    assert engine.sets() == {"": WARM}
    assert told["outputs"] == plain(engine)["outputs"]


def test_another_release_than_the_captures_is_refused_by_name_and_starts_plainly(engine: Engine) -> None:
    captured(engine)
    told, report, talk = restored(engine, STAND_IN_VERSION="5.18.0")
    assert talk.count("transformers: version 5.18.0 is not known, only 5.17.0") == 1
    assert report["graphs_restored"] == 0
    assert told == plain(engine)


def test_random_numbers_that_cannot_be_followed_are_refused_by_name(engine: Engine) -> None:
    """The stand-in's generator is none that graphs can follow; `tests/unit/engines` has one that is."""
    told, _ = captured(engine, STAND_IN_RANDOM="1")
    again, report, talk = restored(engine, STAND_IN_RANDOM="1")
    assert "random numbers inside the graph: torch 2.11.0" in talk
    assert report["graphs_restored"] == 0
    assert again["outputs"] == told["outputs"]
