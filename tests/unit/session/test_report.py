"""What a restore's report says of the time that it took."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from helpers.spool_writer import SpoolWriter

from foundry.engines import torch_seam
from foundry.session import report, unnamed
from foundry.session.restore import Plan
from foundry.session.status import Status


def reported(session: Path) -> dict[str, Any]:
    plan = cast(Plan, SimpleNamespace(summary=None, refused=None, archive=None, restores=True, items=(), caches=None))
    return report.of_restore(plan, session, cast(Status, SimpleNamespace(disarmed={})))


def test_moments_are_seconds_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    for role, ready in (("rank-0", 3_500_000_000), ("rank-1", 2_000_000_000)):
        spool = SpoolWriter(tmp_path, role, mode=2)
        spool.counters(at_last_built_ns=1)
        spool.counters(at_driver_begin_ns=250_000_000, at_commit_ns=ready, at_last_built_ns=900_000_000, graphs_built=3)
        spool.end()
        spool.write()
    found = reported(tmp_path)
    assert [list(process["moments"].items()) for process in found["processes"]] == [
        [("driver_begin", 0.25), ("last_built", 0.9), ("commit", 3.5)],
        [("driver_begin", 0.25), ("last_built", 0.9), ("commit", 2.0)],
    ]
    assert found["counters"] == {"graphs_built": 6}


def test_graphs_that_no_archive_can_give_are_told_with_the_reason(tmp_path: Path) -> None:
    for role in ("rank-0", "rank-1"):
        spool = SpoolWriter(tmp_path, role, mode=2)
        spool.counters(graphs_without_a_key=3, graphs_of_scripts=1, graphs_of_torch_compile=2)
        spool.end()
        spool.write()
    assert reported(tmp_path)["captured_as_always"] == [
        {"graphs": 2, "reason": "the body of `with torch.cuda.graph(...)` may do more than launch kernels"},
        {"graphs": 4, "reason": "what graphs of `torch.compile` hold is found out call by call"},
    ]


def test_without_any_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert reported(tmp_path)["captured_as_always"] == []


def test_a_reason_for_each_kind_that_the_adapter_counts() -> None:
    counted = {torch_seam.SCRIPT[0], *(counter for _, counter, _ in torch_seam.OF_TORCH)}
    assert counted == set(unnamed.REASONS)
