"""The soak on the simulator, short: the same programs and checks as on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import soak
from flat import growing, rise


def samples(values: list[float]) -> list[dict[str, float]]:
    return [{"bytes": value} for value in values]


def noise(number: int) -> float:
    """Give something that goes up and down."""
    return float(number * 7919 % 13)


def test_what_is_flat_may_settle_and_waver() -> None:
    settled = [*range(0, 1000, 100), *(1000 + noise(number) for number in range(90))]
    assert growing(samples(settled), {"bytes": 20}) == []
    assert abs(rise(settled)) < 5


@pytest.mark.parametrize(
    "values",
    [
        [noise(number) + number for number in range(100)],
        [noise(number) + 60 * (number > 50) for number in range(100)],
        [0.0] * 80 + [60.0] * 20,
    ],
    ids=["a steady leak", "a step", "a late step"],
)
def test_what_grows_is_named_with_its_bound(values: list[float]) -> None:
    (told,) = growing(samples(values), {"bytes": 40})
    assert told.startswith("bytes rises by ")
    assert told.endswith(", the bound is 40")


def test_too_few_samples_prove_nothing() -> None:
    with pytest.raises(ValueError, match="4 samples"):
        growing(samples([1.0] * 4), {"bytes": 1})


def test_a_process_that_is_left_is_found() -> None:
    environment = {soak.MARK: "test-of-the-mark"}
    with subprocess.Popen(["/bin/sleep", "60"], env=environment) as process:
        assert soak.marked("test-of-the-mark") == ["/bin/sleep 60 "]
        process.kill()
    assert soak.marked("test-of-the-mark") == []


def test_cycles_of_capture_and_restore_leave_nothing_and_differ_in_nothing(tmp_path: Path) -> None:
    told = soak.cycles(tmp_path, simulated=True, count=5)
    assert (told["cycles"], told["capture_ids"], told["device_bytes_beyond_rest"]) == (5, 1, 0)


def test_long_runs_are_flat_and_right(tmp_path: Path) -> None:
    told = soak.runs(tmp_path, simulated=True, replays=5_000, captures=400)
    assert told["runs"]["replays-restore"]["count"] == 5_000
    assert len(told["runs"]) == 8


def test_a_leak_in_the_program_is_noticed(tmp_path: Path) -> None:
    place = soak.make_place(tmp_path, simulated=True)
    result = place.run("leak", place.program("replays", "--count", 2_000, "--leak", 1_000), plain=True)
    assert [told.split()[0] for told in growing(result["samples"])] == ["host_bytes"]
