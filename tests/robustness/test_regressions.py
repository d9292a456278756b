"""What mutants and the fuzzer have shown once, each as the smallest change of a vector that shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.archive_builder import Piece, build
from robustness import mutants, run_mutants, verdicts

from foundry.archive.layout import WHOLE, Kind

FOUND = mutants.taken_apart((mutants.VECTORS / "libraries.fdry").read_bytes())
assert FOUND is not None
RICH = FOUND
EVERYTHING = 0
"""A number for which every reader and tool is tried."""


def with_text(kind: Kind, change: Callable[[dict[str, Any]], None]) -> bytes:
    """That vector with a change of each text of a kind."""
    pieces = []
    for piece in RICH.pieces:
        if piece.kind == kind:
            value = json.loads(piece.data)
            change(value)
            pieces.append(replace(piece, data=json.dumps(value).encode(), stored=None))
        else:
            pieces.append(piece)
    return build(pieces)


def kernels_past_32_bits(value: dict[str, Any]) -> None:
    for kernel in value["kernels"]:
        kernel["parameters"] = [[0xFFFFFFFF, 8]]


def late_graphs(value: dict[str, Any]) -> None:
    for graph in value["graphs"]:
        graph["step"] = 0xFFFFFFFE


def test_parameters_that_end_past_32_bits(tmp_path: Path) -> None:
    data = with_text(Kind.PROCESS, kernels_past_32_bits)
    assert run_mutants.tried(EVERYTHING, data, tmp_path / "x.fdry") == ("archive-content", "")


def test_parameters_that_end_past_32_bits_of_kernels_that_no_graph_needs(tmp_path: Path) -> None:
    def change(value: dict[str, Any]) -> None:
        kernels_past_32_bits(value)
        for graph in value["graphs"]:
            graph["reason_code"], graph["reason"] = "node-unsupported", "told so"

    data = with_text(Kind.PROCESS, change)
    assert run_mutants.tried(EVERYTHING, data, tmp_path / "x.fdry") == (verdicts.ACCEPTED, "")


def test_steps_are_numbers_and_not_sizes(tmp_path: Path) -> None:
    data = with_text(Kind.PROCESS, late_graphs)
    assert run_mutants.tried(EVERYTHING, data, tmp_path / "x.fdry") == (verdicts.ACCEPTED, "")


@pytest.mark.parametrize("times", [1, 3])
def test_times_of_more_processes_than_there_are(times: int, tmp_path: Path) -> None:
    head = json.dumps({"processes": 0, "context": {}, "packages": {}, "blobs": [], "files": [], "findings": []})
    timeline = json.dumps({"processes": [{"spent": {}}] * times})
    pieces = [Piece(Kind.CAPTURE, WHOLE, head.encode()), Piece(Kind.TIMELINE, WHOLE, timeline.encode(), flags=0)]
    assert run_mutants.tried(EVERYTHING, build(pieces[:1]), tmp_path / "x.fdry") == (verdicts.ACCEPTED, "")
    assert run_mutants.tried(EVERYTHING, build(pieces), tmp_path / "x.fdry") == ("archive-content", "")
