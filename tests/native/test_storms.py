"""Many threads at once, and forks beside them: nothing hangs, nothing is wrong, and the spool can be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.native_build import link_simulator, sanitized
from native.fault_cases import build_images
from native.hook_run import Bench, events

THREADS = 16


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("storms"))


@pytest.mark.parametrize("rounds", ["1", "40"])
def test_threads_capture_and_restore_at_once(bench: Bench, tmp_path: Path, rounds: str) -> None:
    program = bench.program("thread_storm", *link_simulator())
    arguments = str(bench.folder / "kernels.image"), rounds
    captured = bench.run(program, tmp_path / "captured", *arguments)
    assert (captured.code, captured.lines) == (0, ["restored 0"]), captured.errors
    assert len(events(captured.spool(), "Graph")) == THREADS * (int(rounds) + 1)
    images = build_images(captured.session, tmp_path / "images")
    restored = bench.run(
        program, tmp_path / "restored", *arguments, mode="restore", FOUNDRY_IMAGE=str(images), FOUNDRY_QUIET="1"
    )
    assert (restored.code, restored.lines) == (0, [f"restored {THREADS}"]), restored.errors
    assert "disarmed" not in restored.status


@pytest.mark.skipif(sanitized(), reason="the sanitizer keeps its own locks in the child of a fork")
@pytest.mark.parametrize("mode", [None, "", "capture", "restore"])
def test_a_thousand_forks_beside_threads(bench: Bench, tmp_path: Path, mode: str | None) -> None:
    program = bench.program("fork_storm", *link_simulator())
    forks = "1000" if mode == "capture" else "200"
    environment = {"FOUNDRY_QUIET": "1", "FOUNDRY_IMAGE": str(tmp_path)}
    if mode == "restore":
        storm = bench.program("thread_storm", *link_simulator())
        captured = bench.run(storm, tmp_path / "captured", str(bench.folder / "kernels.image"), "1")
        images = build_images(captured.session, tmp_path / "images")
        (images / "thread_storm-0.image").rename(images / "fork_storm-0.image")
        environment["FOUNDRY_IMAGE"] = str(images)
    done = bench.run(program, tmp_path / "session", forks, mode=mode, **environment)
    assert (done.code, done.lines) == (0, ["failed 0"]), done.errors
    if mode:
        assert done.status.splitlines() == ["fork_storm-0 armed"]
        done.spool()
