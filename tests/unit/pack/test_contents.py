"""What the packer makes of recorded contents."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from helpers.spool_writer import ARENA, BASE, SpoolWriter, body, memset_node

from foundry.pack import pack

GRAPH = BASE + 2 * ARENA


@pytest.fixture
def spool(tmp_path: Path) -> SpoolWriter:
    spool = SpoolWriter(tmp_path)
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.allocation(GRAPH, 4096, 2)
    return spool


def graph(spool: SpoolWriter, key: str = "key", at: int = GRAPH) -> None:
    spool.graph(0x90, body([memset_node(at)]), ("set", key), 0xC0)


def reason(spool: SpoolWriter) -> tuple[str, str]:
    made = pack(spool.write())[0].processes[0].graphs[0]
    return made.reason_code, made.reason


MEMORY = "points to memory that was allocated during a capture (allocation 0 of 4096 bytes)"


@pytest.mark.parametrize(
    ("told", "code", "text"),
    [
        ("contents-unread", "contents-unread", "could not be read when the graph was made"),
        ("contents-too-large", "contents-too-large", "holds more than is kept"),
        ("another", "contents-unread", "could not be read when the graph was made"),
    ],
)
def test_what_is_not_known_stands_against_its_graphs(spool: SpoolWriter, told: str, code: str, text: str) -> None:
    spool.no_contents(GRAPH, 4096, told)
    graph(spool)
    assert reason(spool) == (code, f"{MEMORY} {text}")


def test_graphs_that_point_elsewhere_do_not_care(spool: SpoolWriter) -> None:
    spool.allocation(GRAPH + 4096, 4096, 2, 1)
    spool.no_contents(GRAPH, 4096, "contents-unread")
    graph(spool, at=GRAPH + 4096)
    assert reason(spool) == ("", "")


@pytest.mark.parametrize("zeros", [False, True])
def test_a_later_word_counts(spool: SpoolWriter, zeros: bool) -> None:
    spool.no_contents(GRAPH, 4096, "contents-unread")
    graph(spool)
    if zeros:
        spool.no_contents(GRAPH, 0, "")
    else:
        spool.contents(GRAPH + 1024, b"later")
    capture, findings = pack(spool.write())
    process = capture.processes[0]
    assert process.graphs[0].restorable
    assert [(held.address, capture.blobs[held.blob]) for held in process.contents] == (
        [] if zeros else [(GRAPH + 1024, b"later")]
    )
    assert [told.code for told in findings if told.code.startswith("contents")] == ["contents-late"]


@pytest.mark.parametrize(("at", "found"), [(GRAPH, True), (GRAPH + 8, True), (GRAPH + 4, False)])
def test_addresses_in_it_are_seen_where_a_pointer_can_stand(spool: SpoolWriter, at: int, found: bool) -> None:
    spool.contents(at, struct.pack("<QQ", 1, BASE + 5))
    graph(spool)
    assert reason(spool)[0] == ("contents-addresses" if found else "")


def test_addresses_of_memory_that_the_hook_did_not_place_are_seen(spool: SpoolWriter) -> None:
    spool.range(1, 0x7F0000000000, 4096)
    spool.contents(GRAPH, struct.pack("<Q", 0x7F0000000FFF))
    graph(spool)
    assert reason(spool)[0] == "contents-addresses"


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_memory_that_another_graph_has_later_is_filled_for_that(spool: SpoolWriter, first: bool, second: bool) -> None:
    if first:
        spool.contents(GRAPH, b"first")
    graph(spool, "1")
    spool.free(GRAPH, 2)
    spool.allocation(GRAPH, 2048, 2, 1)
    if second:
        spool.contents(GRAPH, b"second")
    graph(spool, "2")
    capture, _ = pack(spool.write())
    (process,) = capture.processes
    held = [capture.blobs[item.blob] for item in process.contents]
    assert held == ([b"second"] if second else [])
    codes = [made.reason_code for made in process.graphs]
    assert codes == (["contents-replaced", ""] if first or second else ["", ""])


def test_a_blob_that_is_missing_stands_against_its_graphs(spool: SpoolWriter) -> None:
    spool.contents(GRAPH, b"bytes")
    (spool.folder / "blob.0").unlink()
    graph(spool)
    assert reason(spool)[0] == "contents-unread"
