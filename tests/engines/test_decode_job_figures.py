"""What the decode job's benchmark makes of its runs: a miss may not look like a hit."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import decode_job

DIGESTS = {size: [{"tokens": [seed] * 100, "cache": f"{size}-{seed}"} for seed in (1, 2)] for size in ("1", "8")}


def result(**more: Any) -> dict[str, Any]:
    return {
        "digests": copy.deepcopy(DIGESTS), "steady": False, "phases": {"graphs": 4.0},
        "replay_ms": {"1": 2.0, "8": 3.0},
        "ready_seconds": 9.0, "first_replay_ms": {"1": 5.0, "8": 6.0}, "restored": 2, "reasons": {},
        "totals": {"warm_ups_run": 0, "captures_run": 0, "graphs_blocked_ns": 40_000_000},
        "report": {"processes": [{"seconds": {"image_check": 0.05, "ready": 0.1, "images": 0.2}}]},
        **more,
    }  # fmt: skip


@pytest.fixture
def figures() -> dict[str, Any]:
    eager = {"eager_digests": DIGESTS, "eager_digests_again": DIGESTS}
    steady = {name: result(steady=True) for name in ("capture", "restore")}
    steady["plain"] = result(steady=True, **eager)
    even = {"given_ms": 2.0, "captured_ms": 2.0, "ratio": 1.0}
    even |= {"given_p99_ms": 2.1, "captured_p99_ms": 2.1, "p99_ratio": 1.0}
    versus = {size: dict(even) for size in DIGESTS}
    return copy.deepcopy(
        {
            "machine": {"gpu": "NVIDIA H200"}, "date": "", "command": "", "archive_bytes": 3_000_000,
            "plain": result(**eager), "capture": result(), "restores": [result(versus=versus), result()],
            "steady": steady,
        }
    )  # fmt: skip


def test_good_figures_miss_nothing(figures: dict[str, Any], tmp_path: Path) -> None:
    assert decode_job.failures(figures) == []
    short = decode_job.short(figures)
    assert short["steady_job_bit_equal"]
    assert short["share_of_other_tokens"]["plain_against_itself"] == 0
    assert short["restore_prepared_seconds"]["median"] == pytest.approx(0.15)
    assert short["graphs"] == 2
    assert decode_job.write(figures, tmp_path).name == "decode-job-nvidia-h200.json"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda f: f["restores"][1]["digests"]["8"][1].update(tokens=[9] * 100), "restore 1: other tokens"),
        (lambda f: f["steady"]["restore"]["digests"]["8"][1].update(cache="x"), "steady restore: differs .* sizes 8"),
        (lambda f: f["steady"]["restore"].update(restored=1, reasons={"8": "moved"}), "restore 2: 1 of 2 graphs"),
        (lambda f: f["restores"][1]["digests"].pop("8"), "restore 1: other tokens"),
        (lambda f: f["capture"]["digests"]["8"][0].update(tokens=[9] * 100), "capture: other tokens"),
        (lambda f: f["restores"][0].update(restored=1, reasons={"8": "moved"}), "restore 0: 1 of 2 graphs: .*moved"),
        (lambda f: f["restores"][0]["totals"].update(captures_run=1), "1 warm-ups and captures ran"),
        (lambda f: f.update(archive_bytes=41_000_000), "41.0 MB"),
        (lambda f: f["restores"][0]["versus"]["8"].update(ratio=1.03), "median: 8: 1.030"),
        (lambda f: f["restores"][0]["versus"]["8"].update(p99_ratio=1.03), "99th percentile: 8: 1.030"),
        (lambda f: [r["totals"].update(graphs_blocked_ns=400_000_000) for r in f["restores"]], "0.400 s"),
    ],
)
def test_each_miss_is_named(figures: dict[str, Any], change: Any, text: str) -> None:
    change(figures)
    (found,) = decode_job.failures(figures)
    assert re.search(text, found)


def test_restores_that_end_when_ready_count_for_times_alone(figures: dict[str, Any]) -> None:
    for name in ("digests", "replay_ms", "first_replay_ms"):
        del figures["restores"][1][name]
    assert decode_job.failures(figures) == []
    assert decode_job.short(figures)["restore_prepared_seconds"]["n"] == 2


def test_last_bits_of_the_job_as_it_is_prove_nothing(figures: dict[str, Any]) -> None:
    figures["restores"][0]["digests"]["8"][1]["cache"] = "x"
    assert decode_job.failures(figures) == []


def test_other_tokens_are_held_against_plain_torchs_own(figures: dict[str, Any]) -> None:
    again = copy.deepcopy(DIGESTS)
    again["8"][0]["tokens"][:10] = [9] * 10
    figures["plain"]["eager_digests_again"] = again
    figures["restores"][0]["digests"]["1"][0]["tokens"][:20] = [9] * 20
    assert decode_job.failures(figures) == []
    assert decode_job.short(figures)["share_of_other_tokens"]["plain_against_itself"] == 0.025
    figures["restores"][0]["digests"]["1"][0]["tokens"][:40] = [9] * 40
    (found,) = decode_job.failures(figures)
    assert found == "restore 0: other tokens than plain eager torch's"
