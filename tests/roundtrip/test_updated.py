"""Restored graphs whose nodes wait for several others are updated in place by graphs that are made anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.native_build import link_simulator
from helpers.roundtrip import Program, Run
from native.hook_run import Bench

from foundry.model import Capture

GROUPS = 5
"""Graphs with their edges in another order have a group of their own; what is nested has those of its parts."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("updated"))


def program(bench: Bench, *words: str) -> Program:
    return Program([str(bench.program("updated", *link_simulator())), str(bench.folder / "kernels.image"), *words])


@pytest.fixture(scope="module")
def captured(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return program(bench).captured(tmp_path_factory.mktemp("captured") / "session", 7)


def test_every_exec_is_updated_as_the_captured_one_is(bench: Bench, captured: Run, tmp_path: Path) -> None:
    (process,) = captured.capture.processes
    assert len(process.groups) == GROUPS
    as_captured = program(bench, "update").captured(tmp_path / "captured", 8).output
    assert "refused" not in as_captured and as_captured.count("updated") == len(process.graphs)
    restored = program(bench, "update").restored(tmp_path / "restored", 9, captured.capture)
    assert restored.output == as_captured


def without_orders(capture: Capture) -> Capture:
    """The capture as archives hold it that do not tell the orders."""
    (process,) = capture.processes
    groups = tuple(type(group)(group.nodes, group.edges) for group in process.groups)
    return replace(capture, processes=(replace(process, groups=groups),))


def test_without_the_orders_graphs_are_the_same_but_refuse_updates(bench: Bench, captured: Run, tmp_path: Path) -> None:
    plain = without_orders(captured.capture)
    assert program(bench).restored(tmp_path / "same", 9, plain).output == captured.output
    updated = program(bench, "update").restored(tmp_path / "restored", 9, plain).output
    refused = {line.split(":")[0] for line in updated.splitlines() if line.endswith("update refused, 910 2")}
    assert refused == {"forked-1", "forked-2", "joined-1", "joined-2", "in-a-row", "rewired", "nested"}
