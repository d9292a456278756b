"""A word that the launch does not read is called so, whatever it looks like."""

from __future__ import annotations

from pathlib import Path

from helpers.unread import FIRST, captured

from foundry.describe.graphs import Graphs
from foundry.machine import reads_of


def test_words_are_called_unread(tmp_path: Path) -> None:
    capture = captured(tmp_path, FIRST, 0x7FFD00001238, FIRST, 5 | 0x7FFD << 32, unread="24:8 32:8 44:4")[0]
    process = capture.processes[0]
    told = {}
    for graphs in (
        Graphs(process),
        Graphs(process, lambda rows: reads_of(process, capture.blobs.__getitem__, rows)),
    ):
        (node,) = graphs.document(0)["contents"][0]["nodes"]
        assert node["parameters"] is not None
        told[graphs] = [word["target"]["kind"] for word in node["parameters"][2]["words"]]
    assert list(told.values()) == [
        ["allocation", "noise", "allocation", "noise"],
        ["allocation", "unread", "unread", "constant"],
    ]
