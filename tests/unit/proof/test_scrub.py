"""Noise: which bytes it is, and what a capture without it is."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import numpy as np
from helpers.proving import FIRST, SECOND, STACK, WORDS, Program

from foundry.findings import DANGLING_WORD, SCRUB_KEPT, SCRUBBED
from foundry.model import Capture
from foundry.model.checks import check_capture
from foundry.model.reads import Reads
from foundry.proof import prove, scrub, scrub_noise
from foundry.proof.scrub_noise import Both, Noise
from foundry.verify.places import Places
from foundry.verify.pointers import check_pointers, pointers_of
from foundry.verify.proof import check_proof

ROLE = "python-0"
GRAPH = "python-0, graph `decode` `1`"


def both_of(first: dict[str, object], second: dict[str, object]) -> tuple[Capture, Both]:
    """Prove two runs, and find the noise of the first."""
    programs = [Program(FIRST, **first), Program(SECOND, 1, **second)]  # type: ignore[arg-type]
    (one, known), (other, others) = (side.captured() for side in programs)
    proven = prove(one, other, (known, others)).capture
    return proven, scrub_noise.find(proven, other)[ROLE]


def sides(first: dict[str, object], second: dict[str, object]) -> tuple[Capture, dict[str, Noise]]:
    """Prove two runs, and find the bytes of the first that differ."""
    capture, both = both_of(first, second)
    return capture, {ROLE: both.narrow}


def words(*values: int) -> dict[str, object]:
    return {"words": (*values, *(0,) * (WORDS - len(values)))}


def struct_of(capture: Capture, node: int = 0) -> bytes:
    """The struct that the kernel of a node takes."""
    size = 16 + 8 * WORDS
    return capture.processes[0].parameters.tobytes()[node * size + 16 : (node + 1) * size]


def test_bytes_that_differ_are_noise_and_equal_ones_stay() -> None:
    capture, found = sides(words(0x1122334400000007, 5, STACK + 0x2222), words(0x5566774400000007, 5, STACK + 0x1111))
    assert found[ROLE].counts.tolist() == [2 * (3 + 2), 0]  # a launch, and the same one in the child graph
    outcome = scrub.settle(capture, found, {})
    values = struct.unpack(f"<{WORDS}Q", struct_of(outcome.capture))
    assert values == (0x0000004400000007, 5, STACK, 0, 0, 0)
    assert struct_of(outcome.capture) == struct_of(outcome.capture, 1)
    assert (outcome.graphs, outcome.clean, outcome.zeroed, outcome.kept) == (2, 2, 10, {})
    (told,) = outcome.findings
    assert (told.code, told.where) == (SCRUBBED, ROLE)
    assert told.text == "noise of 1 graph is zero (10 bytes): replays gave the same without it"


def test_all_of_a_word_that_looks_like_an_address_of_the_host_may_be_noise() -> None:
    # A pointer; two in front of which a number was written; and a number beside noise.
    first = words(STACK + 0x112244, 0x7FFD00000007, 0x22220009, 0x7FFD12345678)
    second = words(STACK + 0x335544, 0x7FFE00000007, 0x33330009, 0x7FFE12345678)
    capture, both = both_of(first, second)
    assert both.differ(0)
    for noise, left in ((both.wide, 0), (both.narrow, 0x7FFD00000044)):
        outcome = scrub.settle(capture, {ROLE: noise}, {})
        values = struct.unpack(f"<{WORDS}Q", struct_of(outcome.capture))
        assert values[:4] == (left, 0x7F0000000007, 0x9, 0x7F0012345678)
        assert check_sound(outcome.capture)
    mixed = both.mixed(capture.processes[0], [0])
    assert (mixed.counts.tolist(), mixed.mask.tolist()) == (both.narrow.counts.tolist(), both.narrow.mask.tolist())
    mixed = both.mixed(capture.processes[0], [1])
    assert (mixed.counts.tolist(), mixed.mask.tolist()) == (both.wide.counts.tolist(), both.wide.mask.tolist())


def test_bytes_that_no_kernel_reads_are_noise_whatever_they_are() -> None:
    capture, _ = sides(words(7, 5, STACK), words(7, 5, STACK))
    read = np.ones(16 + 8 * WORDS, np.bool_)
    read[0:8] = read[20:24] = read[24:30] = read[34:40] = False  # the address, nothing, of the 5, of the stack
    reads = Reads.build([read], np.zeros(3, np.int64), np.zeros(3, np.bool_))
    both = scrub_noise.find(capture, capture, lambda process: reads)[ROLE]
    assert not both.differ(0)
    found = {ROLE: both.narrow}
    outcome = scrub.settle(capture, found, {}, lambda process: reads)
    assert outcome.zeroed == 2 * (1 + 2)
    assert struct.unpack(f"<{WORDS}Q", struct_of(outcome.capture)) == (7, 0, STACK & 0xFFFF, 0, 0, 0)
    assert outcome.capture.processes[0].parameters[:8].tobytes() == capture.processes[0].parameters[:8].tobytes()
    assert check_sound(outcome.capture)


def test_addresses_are_no_noise_however_they_stand() -> None:
    runs = [
        {"packed": ((4, base + 8192), (12, noise))} for base, noise in ((FIRST, STACK), (SECOND, ~STACK & 2**64 - 1))
    ]
    capture, found = sides(*runs)
    outcome = scrub.settle(capture, found, {})
    assert struct_of(outcome.capture)[:20] == bytes(4) + struct.pack("<Q", FIRST + 8192) + bytes(8)
    assert outcome.capture.processes[0].proof == capture.processes[0].proof
    assert check_sound(outcome.capture)


def test_a_graph_with_a_reason_keeps_its_noise() -> None:
    capture, found = sides(words(STACK + 0x2222), words(STACK + 0x1111))
    outcome = scrub.settle(capture, found, {(ROLE, 0): "it differs"})
    assert outcome.capture.processes[0].parameters.tobytes() == capture.processes[0].parameters.tobytes()
    assert [(told.code, told.where, told.text) for told in outcome.findings] == [
        (SCRUBBED, ROLE, "no noise was made zero"),
        (SCRUB_KEPT, GRAPH, "it differs"),
    ]
    assert (outcome.graphs, outcome.clean, outcome.zeroed) == (2, 1, 0)


def test_a_reason_against_a_graph_without_noise_counts_for_nothing() -> None:
    capture, found = sides({}, {})
    outcome = scrub.settle(capture, found, {(ROLE, 0): "it was not asked for"})
    assert (outcome.kept, [told.text for told in outcome.findings]) == ({}, ["no noise was found"])


def test_graphs_whose_noise_is_not_known_keep_it() -> None:
    capture, found = sides(words(STACK, FIRST + 8192), words(STACK + 1, FIRST + 8192))
    assert found[ROLE].counts.tolist() == [0, 0]
    nothing = Reads.build([np.zeros(16 + 8 * WORDS, np.bool_)], np.zeros(3, np.int64), np.zeros(3, np.bool_))
    unread = scrub_noise.find(capture, capture, lambda process: nothing)[ROLE].narrow
    assert unread.counts.tolist() == [0, 1]  # the number of the second graph
    assert scrub.settle(capture, found, {}).kept == {(ROLE, 0): scrub.NOT_PROVEN}
    unproven = replace(capture, processes=(replace(capture.processes[0], proof=None),))
    assert scrub_noise.find(unproven, unproven) == {}
    assert set(scrub.settle(unproven, {}, {}).kept.values()) == {scrub.NO_PARTNER}
    graph = replace(capture.processes[0].graphs[0], reason_code="foreign-memory", reason="it points elsewhere")
    refused = replace(capture.processes[0], graphs=(graph, capture.processes[0].graphs[1]))
    kept = scrub.settle(replace(capture, processes=(refused,)), found, {}).kept
    assert kept == {(ROLE, 0): scrub.NOT_RESTORABLE}


def test_what_is_left_of_a_word_is_no_address() -> None:
    # Never allocated, and without the byte that differs it would be the other end of the first page, which is.
    capture, found = sides(words(FIRST + 0x18000), words(FIRST + 0x28000))
    outcome = scrub.settle(capture, found, {})
    assert struct_of(outcome.capture)[:8] == bytes(8)
    assert check_sound(outcome.capture)


def test_stale_addresses_that_are_gone_are_not_counted_any_more() -> None:
    capture, found = sides(words(FIRST + 65536), words(STACK))
    assert capture.processes[0].graphs[0].dangling_words == 2
    assert DANGLING_WORD in {told.code for told in capture.findings}
    outcome = scrub.settle(capture, found, {})
    assert outcome.capture.processes[0].graphs[0].dangling_words == 0
    assert DANGLING_WORD not in {told.code for told in outcome.capture.findings}
    assert check_sound(outcome.capture)


def test_a_candidate_has_no_noise_at_all() -> None:
    capture, found = sides(words(STACK), words(~STACK & 2**64 - 1))
    tried = scrub.candidate(capture, found)
    assert struct_of(tried) == bytes(8 * WORDS)
    assert tried.processes[0].proof == capture.processes[0].proof
    assert found[ROLE].graphs == [0]


def test_a_witness_says_nothing_about_addresses() -> None:
    def text(base: int, digest: str) -> str:
        return json.dumps({"ö": [base + 8192], "witness": {"found": {"out": digest}}, "more": base + 8200})

    capture, _ = sides({"metadata": text(FIRST, "12ab")}, {"metadata": text(SECOND, "9f9f9f")})
    proof = capture.processes[0].proof
    assert proof is not None
    metadata = text(FIRST, "12ab").encode()
    assert proof.texts.tolist() == [
        (0, metadata.index(b"%d" % (FIRST + 8192))),
        (0, metadata.index(b"%d" % (FIRST + 8200))),
    ]


def check_sound(capture: Capture) -> bool:
    """Ask what `verify --deep` asks."""
    check_capture(capture)
    process = capture.processes[0]
    pointers = pointers_of(process)
    return not [*check_pointers(process, Places(process), pointers), *check_proof(process, pointers)]
