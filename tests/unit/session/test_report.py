"""What a restore's report says of the time that it took."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from helpers.spool_writer import SpoolWriter

from foundry.session import report
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
