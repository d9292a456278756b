"""What goes wrong with JIT caches costs neither an archive nor a start."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from foundry.archive import Summary
from foundry.caches import collect
from foundry.caches.collect import Collector
from foundry.model import Capture
from foundry.session import caching
from foundry.session.listener import Listener


class Hearing(Listener):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def test_a_fault_of_collecting_is_a_finding() -> None:
    class Broken:
        def collect(self) -> None:
            raise ValueError("a fault")

    capture, findings = caching.with_files(Capture((), ()), [], cast(Collector, Broken()))
    assert capture.files == ()
    assert [(finding.code, finding.text) for finding in findings] == [
        ("cache-left-out", "JIT caches are not kept: ValueError: a fault")
    ]
    assert capture.findings == tuple(findings)


def test_what_cannot_be_watched_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(collect, "Watch", fail)
    hearing = Hearing()
    assert caching.begin({"HOME": "/nonexistent"}, hearing) is None
    assert hearing.warnings == ["JIT caches are not kept: [Errno 24] Too many open files"]


def test_an_archive_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    hearing = Hearing()
    summary = cast(Summary, SimpleNamespace(files=3))
    placed = caching.place(tmp_path / "none.fdry", summary, tmp_path, {"HOME": str(tmp_path)}, hearing)
    assert placed is not None
    assert len(placed.faults) == len(hearing.warnings) == 1


def test_an_archive_without_files_costs_nothing(tmp_path: Path) -> None:
    summary = cast(Summary, SimpleNamespace(files=0))
    assert caching.place(tmp_path / "none.fdry", summary, tmp_path, {}, Listener()) is None
