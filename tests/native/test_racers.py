"""Allocations of several threads that may come in another order in the next run."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.native_build import link_simulator
from native.fault_cases import build_images
from native.hook_run import Bench, Outcome

from foundry.pack import pack

RIGHT = "result 1 1 2 2"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("racers"))


def race(bench: Bench, folder: Path, kind: str, first: str, then: str) -> tuple[Outcome, str]:
    """Capture in one order, restore in another; give the restore, and why the graph was refused at once."""
    program = bench.program("racers", *link_simulator())
    captured = bench.run(program, folder / "captured", first, kind)
    assert (captured.code, captured.lines) == (0, [RIGHT])
    (process,) = pack(folder / "captured")[0].processes
    images = build_images(folder / "captured", folder / "images")
    done = bench.run(program, folder / "restored", then, kind, mode="restore", FOUNDRY_IMAGE=str(images))
    assert done.code == 0, done.errors
    return done, process.graphs[0].reason_code


@pytest.mark.parametrize("then", ["ab", "ba"])
@pytest.mark.parametrize("kind", ["at-once", "around"])
def test_memory_that_two_threads_may_change_is_no_graphs(bench: Bench, tmp_path: Path, kind: str, then: str) -> None:
    done, code = race(bench, tmp_path, kind, "ab", then)
    assert done.lines == [RIGHT]
    assert code == "allocation-race"
    assert "that may change places with another thread's in the next run" in done.errors


def test_threads_that_follow_one_another_are_in_order(bench: Bench, tmp_path: Path) -> None:
    done, code = race(bench, tmp_path, "joined", "ab", "ab")
    assert (done.lines, code, done.errors.count("not restored")) == ([RIGHT], "", 0)


def test_other_sizes_in_the_same_order_are_the_same(bench: Bench, tmp_path: Path) -> None:
    done, code = race(bench, tmp_path, "sizes", "ab", "ab")
    assert (done.lines, code, done.errors.count("not restored")) == ([RIGHT], "", 0)


def test_other_sizes_in_another_order_are_seen(bench: Bench, tmp_path: Path) -> None:
    done, code = race(bench, tmp_path, "sizes", "ab", "ba")
    assert (done.lines, code) == ([RIGHT], "")
    assert "the allocation log differs at entry 1 (before the first graph)" in done.errors
