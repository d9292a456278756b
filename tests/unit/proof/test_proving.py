"""What two captures prove of a graph, and each fault that stands against it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.proving import ARENA, FIRST, PINNED, SECOND, STACK, WORDS, Program, proved

from foundry import archive
from foundry.findings import PROOF_MOVED_OTHERWISE, PROOF_NOISE_KNOWN, PROOF_NOT_MOVED, PROOF_UNLIKE
from foundry.model import Proof
from foundry.model.moving import parameter_bytes
from foundry.proof import Outcome


def proof(outcome: Outcome) -> Proof:
    found = outcome.capture.processes[0].proof
    assert found is not None
    return found


def words(*values: int) -> dict[str, object]:
    return {"words": (*values, *(0,) * (WORDS - len(values)))}


def packed(*places: tuple[int, int]) -> dict[str, object]:
    return {"packed": places}


def codes(outcome: Outcome) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in outcome.findings]


GRAPH = "python-0, graph `decode` `1`"


def test_two_captures_of_a_program_prove_all_its_graphs() -> None:
    outcome = proved({}, {})
    assert (outcome.findings, outcome.graphs, outcome.proven, outcome.noise) == ((), 2, 2, 0)
    found = proof(outcome)
    assert found.graphs.tolist() == [0, 1]
    # The pointer of each of the three launches, the memset, both sides of the copy, the number in the metadata.
    assert found.parameters.tolist() == [(0, 0), (1, 0), (2, 0)]
    assert (found.memsets.tolist(), found.copies.tolist()) == ([0], [(0, 48), (0, 136)])
    assert found.texts.tolist() == [(0, 12)]
    assert all(graph.restorable for graph in outcome.capture.processes[0].graphs)


def test_a_proof_is_kept_by_the_archive(tmp_path: Path) -> None:
    outcome = proved(words(STACK), words(STACK + 4096))
    plain = replace(outcome.capture, processes=(replace(outcome.capture.processes[0], proof=None),))
    identities = [
        archive.write(capture, tmp_path / f"{at}.fdry") for at, capture in enumerate((outcome.capture, plain))
    ]
    assert identities[0] == identities[1]
    assert archive.read(tmp_path / "0.fdry").processes == outcome.capture.processes
    summaries = [archive.summary(tmp_path / f"{at}.fdry") for at in (0, 1)]
    assert summaries[0].processes[0].proof == {"graphs": 2, "words": 6, "noise": 2}
    assert (summaries[1].processes[0].proof, summaries[1].proof_id) == ({}, "")
    assert summaries[0].proof_id


def test_words_that_differ_and_are_no_memory_are_noise() -> None:
    outcome = proved(words(STACK, 1 << 40, 17), words(STACK + 4096, 5, 17))
    assert (outcome.findings, outcome.proven, outcome.noise) == ((), 2, 4)  # two words of two launches


@pytest.mark.parametrize("offset", [0, 4, 12, 20, 1, 2, 3, 5, 30, 39, 40])
def test_an_address_is_found_at_any_alignment(offset: int) -> None:
    outcome = proved(packed((offset, FIRST + 8192 + 100)), packed((offset, SECOND + 8192 + 100)))
    assert (outcome.findings, outcome.proven, outcome.noise) == ((), 2, 0)
    assert [place for place in proof(outcome).parameters.tolist() if place[0] == 0] == [(0, 0), (0, 16 + offset)]


def test_a_packed_struct_of_two_addresses_and_numbers() -> None:
    sides = [packed((4, base + 8192), (20, base + 2 * ARENA), (28, 0x1122334455667788)) for base in (FIRST, SECOND)]
    outcome = proved(*sides)
    assert [place[1] for place in proof(outcome).parameters.tolist() if place[0] == 0] == [0, 20, 36]


def test_an_address_beside_noise_in_one_word() -> None:
    sides = [packed((4, base + 8192), (0, 0), (4, base + 8192)) for base in (FIRST, SECOND)]
    noisy = [{"packed": (*side["packed"], (12, noise))} for side, noise in zip(sides, (STACK, STACK + 64), strict=True)]  # type: ignore[misc]
    outcome = proved(*noisy)
    assert (outcome.findings, outcome.proven) == ((), 2)
    assert (0, 20) in proof(outcome).parameters.tolist()


def test_a_stale_address_of_freed_memory_moves_too() -> None:
    outcome = proved(words(FIRST + 65536), words(SECOND + 65536))
    assert (outcome.findings, outcome.proven) == ((), 2)
    assert (0, 16) in proof(outcome).parameters.tolist()


def test_a_stale_address_that_differs_is_noise() -> None:
    outcome = proved(words(FIRST + 65536), words(STACK))
    assert (outcome.findings, outcome.proven, outcome.noise) == ((), 2, 2)


def test_an_address_that_did_not_move_keeps_the_graph_where_it_was() -> None:
    outcome = proved(words(0, FIRST + 8192), words(0, FIRST + 8192))
    assert codes(outcome) == [(PROOF_NOT_MOVED, GRAPH)]
    assert "node 0, `mix`, parameter byte 24: it names memory, and is the same" in outcome.findings[0].text
    assert outcome.findings[0].text.endswith("(and 1 more)")
    assert proof(outcome).graphs.tolist() == [1]
    assert outcome.capture.processes[0].graphs[0].restorable
    assert proof(outcome).parameters.tolist() == [(2, 0)]
    assert (len(proof(outcome).memsets), len(proof(outcome).copies), len(proof(outcome).texts)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (words(FIRST + 8192), words(SECOND)),  # another allocation
        (words(FIRST + 8192), words(SECOND + 8200)),  # another offset in it
        (words(FIRST + 8192), words(SECOND + 2 * ARENA)),  # another arena
        (words(FIRST + 8192), words(STACK)),  # no memory at all
        (words(5), words(SECOND + 8192)),
        (packed((4, FIRST + 8192)), packed((4, SECOND))),
    ],
)
def test_a_word_that_moves_otherwise_stops_a_restore(first: dict[str, object], second: dict[str, object]) -> None:
    outcome = proved(first, second)
    assert codes(outcome) == [(PROOF_MOVED_OTHERWISE, GRAPH)]
    graph = outcome.capture.processes[0].graphs[0]
    assert (graph.reason_code, "node 0, `mix`, parameter byte" in graph.reason) == (PROOF_MOVED_OTHERWISE, True)
    assert proof(outcome).graphs.tolist() == [1]


@pytest.mark.parametrize("side", [0, 1])
def test_noise_in_memory_that_the_driver_knows_stops_a_restore(side: int) -> None:
    # The second program's pinned memory lies 4096 bytes further on.
    values = [words(STACK), words(STACK + 64)]
    values[side] = words(PINNED + 16 + 4096 * side)
    outcome = proved(*values)
    code = "foreign-memory" if side == 0 else PROOF_NOISE_KNOWN
    graph = outcome.capture.processes[0].graphs[0]
    assert graph.reason_code == code
    assert codes(outcome) == ([] if side == 0 else [(PROOF_NOISE_KNOWN, GRAPH)])
    assert proof(outcome).graphs.tolist() == [1]


def test_a_packed_pointer_to_pinned_memory_is_found() -> None:
    outcome = proved(packed((4, PINNED + 16)), packed((4, PINNED + 4096 + 16)))
    assert codes(outcome) == [(PROOF_NOISE_KNOWN, GRAPH)]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"grid": 5}, "node 0, `mix`, its grid, block or shared memory is another"),
        ({"kernel": "other"}, "node 0, `mix`, its kernel is another"),
        ({"nodes": 2}, "it has 4 nodes in the first capture and 5 in the second"),
        ({"edges": ((0, 1, 0),)}, "its nodes are joined otherwise"),
        ({"filled": 8}, "node 1, its value differs"),
    ],
)
def test_another_graph_stops_a_restore(change: dict[str, object], text: str) -> None:
    outcome = proved({}, change)
    found = [finding for finding in outcome.findings if finding.where == GRAPH]
    assert [finding.code for finding in found] == [PROOF_UNLIKE]
    assert text in found[0].text
    assert outcome.capture.processes[0].graphs[0].reason_code == PROOF_UNLIKE


def test_a_memset_or_copy_of_other_memory_stops_a_restore() -> None:
    for change, what in (({"target": SECOND + 8192}, "its destination"), ({"copied": SECOND}, "its source")):
        outcome = proved({}, change)
        assert codes(outcome) == [(PROOF_MOVED_OTHERWISE, GRAPH)]
        assert f"{what}: it is other memory" in outcome.findings[0].text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"attribute": b"\2"}, "one of its launch attributes is another"),
        ({"metadata": '{"inputs": [5], "n": 5}'}, "its metadata differs"),
        ({"metadata": f'{{"inputs": [{SECOND}], "n": 5}}'}, "its metadata differs in the second capture, at byte 12"),
        ({"metadata": f'{{"inputs": [{FIRST + 8192}], "n": 5}}'}, "its metadata names memory at byte 12"),
        ({"metadata": ""}, "its metadata differs"),
    ],
)
def test_what_cannot_be_moved_keeps_the_graph_where_it_was(change: dict[str, object], text: str) -> None:
    outcome = proved({}, change)
    assert codes(outcome) == [(PROOF_UNLIKE, GRAPH)]
    assert text in outcome.findings[0].text
    assert outcome.capture.processes[0].graphs[0].restorable
    assert proof(outcome).graphs.tolist() == [1]


def test_a_graph_that_the_second_capture_lacks_is_not_proven() -> None:
    outcome = proved({}, {"second_graph": False})
    assert codes(outcome) == [(PROOF_UNLIKE, "python-0, graph `decode` `2`")]
    assert proof(outcome).graphs.tolist() == [0]
    assert proved({"second_graph": False}, {}).findings == ()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"first_bytes": 4608},
            "the allocations differ: main allocation 0 of device 0, 4096 bytes at +0x0 by thread 0",
        ),
        ({"extra": True}, "main allocation 2 of device 0, 512 bytes at +0x4000 by thread 2 in the second"),
        ({"contents": b"x"}, "the contents of 0 and of 1 stretches of memory were recorded"),
        ({"role": "python-1"}, "it is not in the second capture"),
    ],
)
def test_processes_that_are_not_alike_are_not_proven(change: dict[str, object], text: str) -> None:
    outcome = proved({}, change)
    assert codes(outcome) == [(PROOF_UNLIKE, "python-0")]
    assert text in outcome.findings[0].text
    assert outcome.capture.processes[0].proof is None
    assert all(graph.restorable for graph in outcome.capture.processes[0].graphs)


def test_contents_are_compared() -> None:
    assert proved({"contents": b"table"}, {"contents": b"table"}).findings == ()
    outcome = proved({"contents": b"table"}, {"contents": b"other"})
    assert "the recorded contents of memory at +0x8000000000 differ" in outcome.findings[0].text


def test_nothing_is_proven_where_the_memory_lies_at_the_same_place() -> None:
    outcome = proved({}, {}, base=FIRST)
    assert f"the memory of device 0 lies at {FIRST:#x} in both captures" in outcome.findings[0].text
    assert outcome.proven == 0


def test_moving_all_that_is_named_gives_the_second_capture() -> None:
    """The point of it all: bytes of the first, moved, are those of the second."""
    sides = [{"packed": ((4, base + 8192), (24, base + 2 * ARENA + 5))} for base in (FIRST, SECOND)]
    outcome = proved(*sides)
    first, second = outcome.capture.processes[0], Program(SECOND, 1, **sides[1]).captured()[0].processes[0]
    found, distance = proof(outcome), SECOND - FIRST
    data = first.parameters.copy()
    for at in parameter_bytes(first, found.parameters).tolist():
        word = int.from_bytes(data[at : at + 8].tobytes(), "little") + distance
        data[at : at + 8] = np.frombuffer(word.to_bytes(8, "little"), np.uint8)
    assert data.tobytes() == second.parameters.tobytes()
