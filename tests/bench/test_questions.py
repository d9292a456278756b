"""Each question that needs no GPU can be asked, in a tiny size; and what becomes of an answer."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.native_build import sanitized

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from measuring import calibration, captures, process, question
from measuring.captures import Captures
from measuring.figures import SECONDS, figure
from measuring.question import Answer, Asked, Question
from measuring.results import ROOT

TINY = {"graphs": 2, "layers": 2, "kernels_per_layer": 3, "images": 4, "image_bytes": 2000}
OPTIONS: dict[str, dict[str, Any]] = {
    "spool_cost": {"graphs": 3, "nodes": 10},
    "many_graphs": {"graphs": [2], "nodes": 10, "sim": True},
    "prefetch": {"modules": 3, "weights": 1},
    "restore_levers": {"ways": "late,early+trimmed", "command": [], "sim": True},
}
FIGURES = {
    "pack_speed": {"pack", "pack, all cores", "pack, memory", "archive"},
    "open_speed": {"first summary of a process", "summary", "open, with its head"},
    "image_build": {"whole", "imports", "reading the archive", "building and writing the image", "image"},
    "verify_speed": {"verify, a small archive", "verify --quick"},
    "tool_speed": {"nothing", "inspect"},
    "start_overhead": {f"{size} archive, image {state}cached" for size in ("small", "large") for state in ("", "not ")},
    "spool_cost": {"a graph, plain", "a graph, recorded", "added to a graph", "spool of a graph", "spool of a node"},
    "restore_levers": {"late: whole start", "late: until all built", "early+trimmed: blocked"},
    "prefetch": {
        *(f"start, cache {state}, {way} reading ahead" for state in ("dropped", "warm") for way in ("with", "without")),
        "bytes read ahead",
    },
    "many_graphs": {
        "2 graphs, floor",
        "2 graphs, plain, all",
        *(f"2 graphs, restored, {what}" for what in ("first", "all", "last")),
    },
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Captures:
    made = Captures(tmp_path_factory.mktemp("captures"), TINY)
    made.have(captures.ONE, captures.TWO, captures.RANKS, captures.SIMULATED)
    return made


@pytest.mark.skipif(sanitized(), reason="a sanitizer's own work is not what is measured")
@pytest.mark.parametrize("name", FIGURES)
def test_a_question_is_answered(name: str, tiny: Captures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = importlib.import_module(name)
    if name == "verify_speed":
        monkeypatch.setattr(script, "LEVELS", script.LEVELS[:1])
    if name == "tool_speed":
        monkeypatch.setattr(script, "TOOLS", script.TOOLS[:2])
    answer = script.QUESTION.measure(Asked(tmp_path, 1, tiny, argparse.Namespace(**OPTIONS.get(name, {}))))
    assert FIGURES[name] <= answer.figures.keys()
    differences = ("added", "last")
    assert all(
        one["median"] >= 0 or any(word in label for word in differences) for label, one in answer.figures.items()
    )
    assert answer.about
    json.dumps([answer.figures, answer.about, dict(answer.details)])
    assert (ROOT / "benchmarks" / f"{script.QUESTION.name.replace('-', '_')}.py").samefile(str(script.__file__))


@pytest.mark.parametrize("name", ["decode_job", "whole_start", "many_graphs", "restore_levers", "launch_overhead"])
def test_what_needs_a_gpu_does_not_pass_for_simulated(name: str) -> None:
    parser = argparse.ArgumentParser()
    importlib.import_module(name).QUESTION.add_options(parser)
    assert parser.parse_args([]).sim is False


def asked(value: float, words: list[str], monkeypatch: pytest.MonkeyPatch, goal: float | None = None) -> int:
    """Ask a question whose answer is known."""
    clock = dict.fromkeys((SECONDS, calibration.PROCESSOR_SECONDS), 0.2)
    monkeypatch.setattr(calibration, "measure", lambda: [clock])
    made = Question("known", "how long", lambda _: Answer({"it": figure([value], SECONDS, goal=goal)}, {"size": 1}))
    return made.main(words)


def test_a_kept_answer_is_what_later_ones_are_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--out", str(tmp_path / "out"), "--kept", str(tmp_path / "kept")]
    assert asked(1.0, [*places, "--strict"], monkeypatch) == 0
    assert "not compared: no kept result of this class of machine" in capsys.readouterr().out
    assert asked(1.0, [*places, "--keep"], monkeypatch) == 0
    (kept,) = (tmp_path / "kept").iterdir()
    result = json.loads(kept.read_text())
    assert result["figures"]["it"] == {"unit": "s", "median": 1.0, "least": 1.0, "most": 1.0, "n": 1}
    assert {"question", "date", "command", "machine", "load_before", "calibration", "about"} <= result.keys()
    capsys.readouterr()
    assert asked(1.5, places, monkeypatch) == 0
    assert "slower: it 1.50x" in capsys.readouterr().out
    assert asked(1.5, [*places, "--strict"], monkeypatch) == 1
    assert asked(0.5, [*places, "--strict"], monkeypatch) == 0
    assert "faster: it 0.50x" in capsys.readouterr().out


def test_a_missed_goal_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--out", str(tmp_path), "--kept", str(tmp_path / "kept")]
    assert asked(3.0, places, monkeypatch, goal=3.0) == 0
    assert asked(3.1, places, monkeypatch, goal=3.0) == 1
    assert "missed: it: 3.1 s, the goal is 3 s" in capsys.readouterr().out


def test_the_suite_names_its_questions() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert {name.replace("-", "_") for name in names} == {*FIGURES, "launch_overhead"}
    assert all((ROOT / "benchmarks" / f"{name.replace('-', '_')}.py").exists() for name in names)


def test_the_suite_refuses_a_question_that_it_does_not_have() -> None:
    words = [sys.executable, "-m", "benchmarks", "--only", "nothing"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no such question: nothing" in done.stderr


def test_the_calibration_does_the_same_work_each_time() -> None:
    assert calibration.work() == calibration.work()


def test_a_command_that_fails_is_not_measured(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import sys; print('no luck', file=sys.stderr); sys.exit(3)"]
    with pytest.raises(process.CommandFailedError, match="ended with 3: no luck"):
        process.run(words, tmp_path)
    assert process.run(words, tmp_path, codes=(3,)).peak_bytes > 0


@pytest.mark.parametrize(("told", "counted"), [("123456", [123456.0]), ("<not supported>", [])])
def test_instructions_are_counted_where_they_can_be(
    told: str, counted: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perf = tmp_path / "perf"
    line = f"{told};;instructions:u;0;100.00;;"
    perf.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho "{line}" > "$2"\n')
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    process.counts_instructions.cache_clear()
    try:
        assert process.instructions(["true"], tmp_path, 1) == counted
    finally:
        process.counts_instructions.cache_clear()


def test_the_report_lines_up(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"pack": figure([2.0, 2.1], SECONDS, goal=3.0), "archive": figure([12_000_000], "B")}
    facts = {"gpu": "simulated", "cores": 2, "architecture": "x86_64"}
    question.report("pack-speed", {"question": "how long", "figures": figures, "machine": facts, "missed": []}, None)
    assert capsys.readouterr().out.splitlines() == [
        "pack-speed: how long",
        "  pack        2.05 s (2 s to 2.1 s)              goal 3 s",
        "  archive      12 MB (12 MB to 12 MB)",
        "not compared: no kept result of this class of machine (2-cores-x86-64)",
    ]
