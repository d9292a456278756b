"""Parameters word by word, and what each points to."""

from __future__ import annotations

import random
import struct

import pytest
from helpers.showcase import ARENA, BASE, GRAPH, HEAP, SCRATCH, STACK, TABLE, showcase
from helpers.varied import varied_capture

from foundry.describe.parameters import decode
from foundry.describe.targets import Targets
from foundry.model import NodeType, Process
from foundry.model.pointers import Target, find_pointers
from foundry.model.views import GraphView


@pytest.fixture(scope="module")
def process() -> Process:
    return showcase().processes[0]


@pytest.fixture(scope="module")
def targets(process: Process) -> Targets:
    return Targets(process, process.graphs[0].step)


@pytest.mark.parametrize(
    ("word", "kind", "text"),
    [
        (BASE, "allocation", "main allocation 0"),
        (BASE + 0x100010, "allocation", "main allocation 1 + 0x10"),
        (GRAPH + 0x200, "allocation", "graph allocation 0 + 0x200"),
        (SCRATCH + 8, "allocation", "scratch allocation 0 + 0x8"),
        (BASE + 0x300000, "dangling", "dangling in the main arena"),
        (BASE + 3 * ARENA - 1, "dangling", "dangling in the graph arena"),
        (BASE + 3 * ARENA, "constant", "constant"),
        (BASE - 1, "constant", "constant"),
        (TABLE + 16, "range", "global `_ZN6cublas5tableE` + 0x10"),
        (TABLE + 256, "constant", "constant"),
        (STACK, "noise", "looks like a host address: noise"),
        (HEAP, "noise", "looks like a host address: noise"),
        (0, "constant", "constant"),
        (2**64 - 1, "constant", "constant"),
    ],
)
def test_what_a_word_points_to(targets: Targets, word: int, kind: str, text: str) -> None:
    if kind == "constant" and 0x7F0000000000 < word < 0x800000000000:
        kind, text = "noise", "looks like a host address: noise"
    target = targets.of(word)
    assert (target["kind"], target["text"]) == (kind, text)


def test_an_allocation_is_named_by_its_place(targets: Targets) -> None:
    assert targets.of(BASE + 0x100010) == {
        "kind": "allocation", "text": "main allocation 1 + 0x10", "device": 0, "arena": "main", "allocation": 1,
        "ordinal": 1, "offset": 16, "size": 0x100000,
    }  # fmt: skip


def test_an_address_of_nothing_is_not_called_noise(targets: Targets) -> None:
    assert targets.of(STACK, pointer=True)["kind"] == targets.of(3, pointer=True)["kind"] == "unknown"


def test_words_are_those_of_the_block(targets: Targets) -> None:
    block = struct.pack("<IIQQHHI", 7, 9, GRAPH, STACK, 1, 2, 3)
    found = decode([(0, 4), (4, 4), (8, 16), (24, 2)], block, targets)
    told = [
        (
            one["index"],
            one["offset"],
            one["size"],
            [(word["offset"], word["size"], word["value"], word["target"]["kind"]) for word in one["words"]],
        )
        for one in found
    ]
    assert told == [
        (0, 0, 4, [(0, 4, "0x7", "constant")]),
        (1, 4, 4, [(4, 4, "0x9", "constant")]),
        (2, 8, 16, [(8, 8, hex(GRAPH), "allocation"), (16, 8, hex(STACK), "noise")]),
        (3, 24, 2, [(24, 2, "0x1", "constant")]),
        (None, 26, 6, [(26, 6, "0x30002", "constant")]),
    ]


def test_halves_of_a_pointer_are_judged_together(targets: Targets) -> None:
    found = decode([(0, 4), (4, 4)], struct.pack("<Q", GRAPH), targets)
    assert [word["target"]["kind"] for one in found for word in one["words"]] == ["allocation", "allocation"]


def test_a_block_without_a_layout_and_a_layout_without_a_block(targets: Targets) -> None:
    (rest,) = decode([], struct.pack("<Q", BASE) + b"\1\2\3", targets)
    assert (rest["index"], [word["size"] for word in rest["words"]]) == (None, [8, 3])
    assert decode([], bytes(16), targets) == []
    assert [one["words"] for one in decode([(0, 8), (8, 8)], b"", targets)] == [[], []]
    overlapping = decode([(0, 8), (4, 8), (100, 8)], bytes(range(16)), targets)
    assert [(one["index"], sum(word["size"] for word in one["words"])) for one in overlapping] == [
        (0, 8), (1, 4), (None, 4), (2, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_the_pointer_audit_says_the_same(seed: int) -> None:
    kinds = {Target.ALLOCATION: "allocation", Target.DANGLING: "dangling", Target.RANGE: "range"}
    for process in varied_capture(random.Random(seed)).processes:
        table = find_pointers(process, process.ranges)
        known = {
            (int(row["body"]), int(row["node"]), int(row["offset"])): (kinds[int(row["kind"])], int(row["word"]))
            for row in table
            if row["type"] == NodeType.KERNEL
        }
        found = {}
        view = GraphView(process)
        tops = [graph.body for graph in process.graphs] + [len(process.bodies)]
        for index, graph in enumerate(process.graphs):
            targets = Targets(process, graph.step)
            for body in range(tops[index], tops[index + 1]):
                for node in view.nodes(body):
                    for one in decode([], node.parameters or b"", targets):
                        for word in one["words"]:
                            if word["target"]["kind"] in kinds.values():
                                place = body, node.index, word["offset"]
                                found[place] = word["target"]["kind"], int(word["value"], 16)
        assert found == known
