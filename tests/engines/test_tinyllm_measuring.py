"""What measures the C engine on a GPU (`tests/gpu/tinyllm_engine.py`), on the simulator: its figures mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.native_build import command_environment

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

import run_all
import tinyllm_engine
from scenarios import FOUNDRY

WAYS = {"eager", "graphs", "restore", "updated", "dedicated"}


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> tinyllm_engine.Ways:
    return tinyllm_engine.Ways(tmp_path_factory.mktemp("engine"), simulated=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(tinyllm_engine.SWITCH, raising=False)
    for name, value in command_environment().items():
        monkeypatch.setenv(name, value)


def test_a_part_that_fails_leaves_the_figures_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(ways: tinyllm_engine.Ways, *before: object) -> str:
        tinyllm_engine.run(ways.folder, "parity", ["false"])
        return "not reached"

    def step(folder: Path) -> dict[str, Any]:
        # No time is left: each way is measured once all the same.
        return tinyllm_engine.tinyllm_engine(folder, 3, simulated=True, seconds=0, cases=tinyllm_engine.CASES[:1])

    monkeypatch.setattr(tinyllm_engine.Ways, "parity", failing)
    monkeypatch.setattr(run_all, "keep_machine", lambda out: None)
    monkeypatch.setitem(run_all.STEPS, "tinyllm_engine", step)
    monkeypatch.setattr(sys, "argv", ["run_all.py", str(tmp_path / "out"), "tinyllm_engine"])
    assert run_all.main() == 1
    told = json.loads((tmp_path / "out" / "summary.json").read_text())["tinyllm_engine"]
    assert not told["passed"]
    assert told["error"].startswith("AssertionError: parity: AssertionError: parity ended with 1")
    figures = told["figures"]
    assert figures["cpu_gives_the_same_tokens"] == {"1 at 0": True}
    assert (figures["parity"], len(figures["problems"])) == (None, 1)
    moved = figures["updating_restored"]
    assert moved["restored"] > 0 < moved["updated"], moved
    assert moved["refused"] == 0, moved
    for name in ("one_token", "one", "four"):
        assert figures[name].pop("runs") == 1
        assert figures[name].keys() == WAYS
        assert all(one["tokens_a_second"] > 0 for one in figures[name].values())


def test_other_tokens_are_named_with_the_way_and_the_case(
    ways: tinyllm_engine.Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tinyllm_engine.Ways.run

    def other(ways: tinyllm_engine.Ways, way: str, *case: Any) -> tuple[list[list[int]], dict[str, Any]]:
        tokens, found = ran(ways, way, *case)
        return [[7]] if way == "restore" else tokens, found

    monkeypatch.setattr(tinyllm_engine.Ways, "run", other)
    problems, same = tinyllm_engine.compare_tokens(ways, 1, 0)
    assert problems == ["restore, 1 prompts at 0: AssertionError: other tokens than eager"]
    assert same


def test_a_way_that_takes_too_long_is_tried_once(ways: tinyllm_engine.Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    ran, tried = tinyllm_engine.run, []

    def slow(folder: Path, name: str, command: list[Any], **more: Any) -> str:
        tried.append(name)
        if name == "updated":
            raise subprocess.TimeoutExpired("tinyllm", tinyllm_engine.LONGEST)
        return ran(folder, name, command, **more)

    ways.run("capture", 1, 0, 4)
    monkeypatch.setattr(ways, "stuck", set())
    monkeypatch.setattr(tinyllm_engine, "run", slow)
    problems: list[str] = []
    for _ in range(2):
        figures = tinyllm_engine.measure(ways, 1, 4, 2, tinyllm_engine.Clock(60), problems)
        assert figures.keys() == WAYS - {"updated"} | {"runs"}
    assert tried.count("updated") == 1
    assert [problem.rpartition(": ")[0] for problem in problems] == [
        "updated, 1 prompts, 4 tokens: TimeoutExpired",
        "updated, 1 prompts, 4 tokens: AssertionError",
    ]


def test_parity_is_told_in_one_line(ways: tinyllm_engine.Ways) -> None:
    assert ways.parity().startswith("foundry: parity of tinyllm: equal: 360 rounds (216 replayed, 72 updated, ")
    assert FOUNDRY[1:] == ["-m", "foundry"]
