"""The charts show the kept results, and nothing else."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import charts
from measuring import results
from measuring.drawing import WIDTH, ticks

KEPT_CHARTS = sorted(charts.CHARTS.glob("*.svg"))
DECODE_JOB = {
    "machine": {"gpu": "NVIDIA H200", "driver": "580.0"}, "date": "2026-11-30", "graphs": 35,
    "plain_graphs_seconds": 5.7, "restore_waited_seconds": {"median": 0.15},
    "ready_seconds": {"plain": 10.8, "restore": {"median": 3.4}},
}  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


def test_what_is_kept_is_what_is_drawn() -> None:
    """`python benchmarks/charts.py` draws them again."""
    drawn = dict(charts.drawn(results.KEPT))
    assert {path.name: path.read_text() for path in KEPT_CHARTS} == drawn


def test_every_chart_is_shown_in_the_readme() -> None:
    readme = (results.BENCHMARKS / "README.md").read_text()
    assert [path.name for path in KEPT_CHARTS if f"charts/{path.name}" not in readme] == []


@pytest.mark.parametrize("path", KEPT_CHARTS, ids=lambda path: path.stem)
def test_a_chart_is_well_formed_and_nothing_leaves_it(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    assert width == WIDTH
    assert root.find(f"{SVG}title") is not None
    for text in root.iter(f"{SVG}text"):
        length = 0.56 * float(text.attrib["font-size"]) * len(text.text or "")
        left = float(text.attrib["x"]) - {"start": 0, "middle": length / 2, "end": length}[text.attrib["text-anchor"]]
        assert left >= 0
        assert left + length <= width
        assert 0 < float(text.attrib["y"]) < height
    for bar in root.findall(f"{SVG}rect"):
        assert float(bar.get("x", 0)) + float(bar.attrib["width"]) <= width


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    assert dict(charts.drawn(tmp_path)) == {}
    (tmp_path / "decode-job-nvidia-h200.json").write_text(json.dumps(DECODE_JOB))
    assert list(dict(charts.drawn(tmp_path))) == ["decode-job-nvidia-h200.svg"]


def test_the_peer_is_drawn_only_from_a_figure_of_it() -> None:
    peer = {"name": "another one", "ready_seconds": {"median": 5.0}, "waited_seconds": {"median": 0.5}}
    assert "another one" not in charts.start_up(DECODE_JOB)
    assert "another one" in charts.start_up({**DECODE_JOB, "peer": peer})


@pytest.mark.parametrize(
    ("most", "expected"),
    [(4.4e6, [0, 1e6, 2e6, 3e6, 4e6, 5e6]), (0.0027, [0, 0.001, 0.002, 0.003]), (10.8, [0, 2.5, 5, 7.5, 10, 12.5])],
)
def test_an_axis_has_round_numbers(most: float, expected: list[float]) -> None:
    assert ticks(most) == pytest.approx(expected)
