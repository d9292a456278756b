from __future__ import annotations

from pathlib import Path

import pytest
from helpers.spool_writer import SpoolWriter

from foundry.errors import NoHookedProcessError
from foundry.findings import Finding, Severity
from foundry.session import product, words


def test_an_empty_session_is_nothing_to_archive(tmp_path: Path) -> None:
    (tmp_path / "role-without-events").mkdir()
    with pytest.raises(NoHookedProcessError):
        product.pack(tmp_path, {}, all_kernels=False)
    with pytest.raises(NoHookedProcessError):
        product.pack(tmp_path / "none", {}, all_kernels=False)
    with pytest.raises(NoHookedProcessError, match="nothing to archive: -: driver 9 is odd"):
        product.pack(tmp_path, {}, all_kernels=False, disarmed={"-": "driver 9 is odd"})


def test_a_process_that_stopped_recording_is_told_once(tmp_path: Path) -> None:
    for role in ("python-0", "python-1"):
        spool = SpoolWriter(tmp_path, role)
        spool.driver()
        if role == "python-1":
            spool.told("disarmed", "its own words")
        spool.end()
        spool.write()
    capture, findings = product.pack(
        tmp_path, {}, all_kernels=False, disarmed={"python-0": "no room", "python-1": "its own words"}
    )
    assert [(finding.where, finding.text) for finding in findings] == [
        ("python-1", "its own words"),
        ("python-0", "recording ended early: no room"),
    ]
    assert capture.findings == tuple(findings)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_960, "1.0 MB"),
        (5 * 10**12, "5000.0 GB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert words.readable_size(size) == text


def test_findings_are_counted_by_code_and_the_worst_come_first() -> None:
    findings = (
        Finding("note", Severity.NOTE, "not told"),
        Finding("warn", Severity.WARN, "first", "rank-0"),
        Finding("warn", Severity.WARN, "second"),
        Finding("error", Severity.ERROR, "bad"),
    )
    assert product.worst_findings(findings) == ["error: bad", "warn: rank-0: first (and 1 more like it)"]


def test_the_line_says_what_a_restore_cannot_bring_back() -> None:
    made = product.Product(Path("/x.fdry"), "id", 2_500_000, 3, 2, 1, True, True, (Finding("w", Severity.WARN, "t"),))
    assert made.line() == "`/x.fdry`, 2.5 MB, 3 graphs, 1 kernel image, 1 not restorable, simulated, 1 finding"
