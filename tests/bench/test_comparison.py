"""A regression is seen, and what is none is not called one."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from measuring import comparison, machine, results
from measuring.figures import BYTES, INSTRUCTIONS, PROCESSOR_SECONDS, SECONDS, amount, figure, spread

CLOCK = {unit: spread([0.2, 0.201, 0.199]) for unit in (SECONDS, PROCESSOR_SECONDS)}


def result(value: float = 4.0, unit: str = SECONDS, *, clock: float = 1.0, noise: float = 0.01) -> dict[str, Any]:
    """A result of one figure; `clock`: how slow the machine is."""
    figures = {"pack": figure([value * (1 - noise), value, value * (1 + noise)], unit)}
    calibration = {unit: spread([one * clock for one in (0.2, 0.201, 0.199)]) for unit in CLOCK}
    facts = {"gpu": "simulated", "cores": 2, "architecture": "x86_64", "python": "3.12.3"}
    return {"about": {"graphs": 256}, "calibration": calibration, "figures": figures, "machine": facts}


def verdict(kept: dict[str, Any], now: dict[str, Any]) -> comparison.Verdict:
    (one,) = comparison.compare(kept, now)
    return one


@pytest.mark.parametrize(
    ("unit", "factor", "kind"),
    [
        (SECONDS, 1.31, "slower"), (SECONDS, 1.05, "alike"), (SECONDS, 0.96, "alike"), (SECONDS, 0.5, "faster"),
        (PROCESSOR_SECONDS, 1.31, "slower"), (PROCESSOR_SECONDS, 0.5, "faster"),
        (BYTES, 1.2, "slower"), (BYTES, 1.01, "alike"), (INSTRUCTIONS, 1.1, "slower"), (INSTRUCTIONS, 0.9, "faster"),
    ],
)  # fmt: skip
def test_a_difference_is_named_beyond_the_tolerance(unit: str, factor: float, kind: str) -> None:
    assert verdict(result(4.0, unit), result(4.0 * factor, unit)).kind == kind


def test_the_verdict_says_both_figures_and_both_calibrations() -> None:
    assert verdict(result(4.3), result(4.3 * 1.31)).text == (
        "slower: pack 1.31x (kept 4.3 s at calibration 200 ms, now 5.63 s at 200 ms, within 13% is noise)"
    )
    assert verdict(result(100.0, BYTES), result(150.0, BYTES)).text == (
        "larger: pack 1.50x (kept 100 B, now 150 B, within 7% is noise)"
    )


@pytest.mark.parametrize("unit", [SECONDS, PROCESSOR_SECONDS])
def test_a_machine_that_is_half_as_fast_is_no_slower_code(unit: str) -> None:
    assert verdict(result(4.0, unit), result(8.0, unit, clock=2.0)).kind == "alike"
    assert verdict(result(4.0, unit), result(4.0, unit, clock=2.0)).kind == "faster"
    assert verdict(result(4.0, unit), result(4.0, unit, clock=0.5)).kind == "slower"


@pytest.mark.parametrize("unit", [BYTES, INSTRUCTIONS])
def test_bytes_and_instructions_do_not_go_by_the_clock(unit: str) -> None:
    assert verdict(result(4e6, unit), result(4e6, unit, clock=2.0)).kind == "alike"


def test_what_lies_within_the_spread_is_noise() -> None:
    assert verdict(result(4.0), result(5.0)).kind == "slower"
    assert verdict(result(4.0, noise=0.1), result(5.0, noise=0.1)).kind == "alike"


def test_one_disturbed_run_hides_nothing() -> None:
    now = result(5.0)
    now["figures"]["pack"]["most"] = 60.0
    assert verdict(result(4.0), now).kind == "slower"


def test_new_and_gone_figures_are_told_apart() -> None:
    kept, now = result(), result()
    now["figures"]["other"] = now["figures"].pop("pack")
    new, gone = comparison.compare(kept, now)
    assert (new.kind, new.worse) == ("new", False)
    assert (gone.kind, gone.worse, gone.text) == ("gone", True, "gone: pack")


def test_a_figure_in_another_unit_is_a_new_one() -> None:
    assert verdict(result(4.0, SECONDS), result(4.0, BYTES)).kind == "new"


def test_what_cannot_be_compared_is_said() -> None:
    assert comparison.why_not(result(), result(), "x") == ""
    assert comparison.why_not(None, result(), "2-cores-x86-64") == (
        "no kept result of this class of machine (2-cores-x86-64)"
    )
    older = {"command": "", "machine": {}}
    assert "no figures" in comparison.why_not(older, result(), "x")
    other = copy.deepcopy(result())
    other["about"]["graphs"] = 8
    assert comparison.why_not(other, result(), "x") == "the kept result is of other work"


def test_another_class_of_machine_has_another_file(tmp_path: Path) -> None:
    facts = result()["machine"]
    path = results.write(tmp_path, "pack-speed", result())
    assert path.name == "pack-speed-2-cores-x86-64.json"
    assert results.read(path) == result()
    assert results.read(tmp_path / results.file_name("pack-speed", facts | {"cores": 16})) is None
    assert machine.kind({"gpu": "NVIDIA H200"}) == "nvidia-h200"


def test_other_versions_are_named() -> None:
    now = result()
    now["machine"]["python"] = "3.13.0"
    assert comparison.differences(result(), now) == ["python: 3.12.3 then, 3.13.0 now"]


def test_amounts_are_written_with_three_digits() -> None:
    values = [(0.0042, SECONDS), (2.65e-7, SECONDS), (12.3, PROCESSOR_SECONDS), (188_200_836, BYTES), (12, BYTES)]
    assert [amount(*value) for value in values] == ["4.2 ms", "265 ns", "12.3 s", "188 MB", "12 B"]
    assert amount(3_210_000, INSTRUCTIONS) == "3.21 M"
    assert amount(0, SECONDS) == "0 ns"
