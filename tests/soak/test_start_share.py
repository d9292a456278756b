"""The benchmark of what the hook adds to a start: that it measures what it says, on the simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import hooked
import soak
import start_share


def figures(disarmed: float, capture: float) -> dict[str, dict[str, dict[str, float]]]:
    return {"added_share": {"disarmed": {"of_medians": disarmed}, "capture": {"of_medians": capture}}}


def test_what_is_over_its_limit_is_named() -> None:
    assert start_share.failures(figures(0.029, 0.149)) == []
    assert start_share.failures(figures(0.03, 0.2)) == [
        "disarmed: the start is 3.0% longer, the limit is 3%",
        "capture: the start is 20.0% longer, the limit is 15%",
    ]


def test_a_share_is_of_medians_and_run_by_run() -> None:
    plain = [{"start": seconds} for seconds in (10.0, 20.0, 10.0)]
    found = start_share.added([{"start": seconds} for seconds in (11.0, 18.0, 12.0)], plain)
    assert (found["seconds"], found["of_medians"]) == (pytest.approx(2.0), pytest.approx(0.2))
    assert (found["by_run"]["least"], found["by_run"]["most"]) == (pytest.approx(-0.1), pytest.approx(0.2))


def test_each_way_is_measured_in_the_state_it_names(tmp_path: Path) -> None:
    place = soak.make_place(tmp_path, simulated=True)
    found = start_share.measure(
        tmp_path, place.program("once"), ways=["plain", "disarmed"], runs=1, ready='"restored": 0', simulated=True
    )
    for way in ("plain", "disarmed"):
        assert 0 < found["seconds"][way]["start"]["median"] <= found["seconds"][way]["whole"]["median"]


@pytest.mark.parametrize("way", ["captured", "disarmed"])
def test_a_hook_in_another_state_is_not_measured(way: str, tmp_path: Path) -> None:
    environment = hooked.environment(way, tmp_path, simulated=True)
    with pytest.raises(RuntimeError, match=f"the hook was not {way}: it has said nothing"):
        hooked.check(way, environment)
