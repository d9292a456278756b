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
WHOLE_START = {
    "machine": DECODE_JOB["machine"], "date": "2026-11-30",
    "figures": {
        f"{way}: {what}": {"median": seconds}
        for way, whole, graphs in (("plain", 5.4, 3.4), ("restored", 2.0, 0.03))
        for what, seconds in (("first token", whole), ("graphs", graphs))
    },
    "moments": {
        way: dict(zip([*charts.MOMENTS, "first token"], ends, strict=True))
        for way, ends in (
            ("plain", (0.1, 1.6, 1.9, 1.9, 2.0, 5.4, 5.4)),
            ("restored", (0.2, 1.9, 1.9, 1.9, 1.97, 2.0, 2.0)),
        )
    },
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


def test_a_whole_start_is_drawn_part_by_part() -> None:
    drawn = charts.whole_start(WHOLE_START)
    bars = [
        bar for bar in ElementTree.fromstring(drawn).findall(f"{SVG}rect") if bar.get("height") == f"{charts.BAR:.1f}"
    ]
    ends = [float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in bars]
    assert len(bars) == 9, "nothing is drawn of what takes no time"
    assert ends[4] / ends[8] > 1.5
    assert "5.4 s, of it" in drawn
    assert "30 ms for graphs" in drawn
    assert "peer" not in drawn


def test_a_whole_start_without_its_ways_is_not_drawn() -> None:
    only = {"figures": {}, "moments": {"restored, last graph first": {}}}
    assert charts.whole_start(only) == ""


def test_the_peer_of_a_whole_start_is_drawn_with_its_name() -> None:
    moments = {**WHOLE_START["moments"], "peer": {**WHOLE_START["moments"]["plain"], "modules": 1.95}}
    figures = {**WHOLE_START["figures"], "peer: first token": {"median": 5.4}, "peer: graphs": {"median": 3.45}}
    drawn = charts.whole_start({**WHOLE_START, "moments": moments, "figures": figures, "peer": "another one"})
    assert "another" in drawn
    assert "3.45 s for modules and graphs" in drawn


@pytest.mark.parametrize(
    ("most", "expected"),
    [(4.4e6, [0, 1e6, 2e6, 3e6, 4e6, 5e6]), (0.0027, [0, 0.001, 0.002, 0.003]), (10.8, [0, 2.5, 5, 7.5, 10, 12.5])],
)
def test_an_axis_has_round_numbers(most: float, expected: list[float]) -> None:
    assert ticks(most) == pytest.approx(expected)
