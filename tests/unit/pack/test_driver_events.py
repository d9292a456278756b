"""Events that graph nodes name: one and the same for all graphs, and restorable only where nobody else can name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.packing import one_graph, packed, start
from helpers.spool_writer import SpoolWriter, body, child_node, empty_node, event_node, refused_node

from foundry.findings import EVENT_SHARED, EXEC_CHANGED

EVENT, OTHER = 0xE0, 0xE1
PAIR = body([event_node(EVENT), event_node(EVENT, record=False)])


def with_event(folder: Path) -> SpoolWriter:
    spool = start(folder / "s")
    spool.event(EVENT, 2)
    return spool


def reasons(spool: SpoolWriter) -> list[str]:
    return [graph.reason_code for graph in packed(spool)[0].graphs]


def test_events_keep_their_identity_across_graphs(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.event(EVENT, 1)
    spool.event(OTHER, 2)
    spool.graph(0x90, body([event_node(OTHER), event_node(EVENT)]), ("s", "1"))
    spool.graph(0x91, body([event_node(OTHER, record=False)]), ("s", "2"))
    spool.event_gone(OTHER)
    spool.event(OTHER, 3)
    spool.graph(0x92, body([event_node(OTHER)]), ("s", "3"))
    spool.event_gone(OTHER)
    spool.event_gone(EVENT)
    process, codes = packed(spool)
    assert process.event_nodes.tolist() == [0, 1, 0, 2] and process.events == (2, 1, 3)
    assert codes == []


def test_an_event_that_the_program_holds_is_shared(tmp_path: Path) -> None:
    graph = one_graph(with_event(tmp_path), empty_node(), child_node(PAIR))
    assert (graph.reason_code, graph.reason) == (EVENT_SHARED, "the program may use event 0 outside of graphs")


def test_an_event_that_the_program_destroyed_is_the_graphs_own(tmp_path: Path) -> None:
    spool = with_event(tmp_path)
    spool.graph(0x90, PAIR)
    spool.event_gone(EVENT)
    spool.launched(0x90)
    assert reasons(spool) == [""]


def test_a_launch_before_the_destruction_may_have_been_waited_for(tmp_path: Path) -> None:
    spool = with_event(tmp_path)
    spool.graph(0x90, PAIR)
    spool.launched(0x90)
    spool.event_gone(EVENT)
    assert reasons(spool) == [EVENT_SHARED]


def test_what_is_destroyed_after_the_last_commit_of_a_torn_spool_still_stood(tmp_path: Path) -> None:
    spool = with_event(tmp_path)
    spool.graph(0x90, PAIR)
    spool.commit()
    spool.event_gone(EVENT)
    spool.launched(0x90)
    spool.write(cut=3)
    from foundry.pack import pack

    (process,) = pack(tmp_path / "s")[0].processes
    assert [graph.reason_code for graph in process.graphs] == [EVENT_SHARED]


def test_a_handle_that_is_used_again_leaves_the_first_event_to_its_graph(tmp_path: Path) -> None:
    spool = with_event(tmp_path)
    spool.graph(0x90, PAIR)
    spool.event(EVENT, 0)
    spool.graph(0x91, PAIR)
    spool.event_gone(EVENT)
    assert reasons(spool) == ["", EVENT_SHARED], "the one end told is that of the first"
    spool.event_gone(EVENT)
    assert reasons(spool) == ["", ""]


def test_an_end_without_a_beginning_is_nothing(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.event_gone(EVENT)
    spool.event(EVENT)
    assert one_graph(spool, event_node(EVENT)).reason_code == EVENT_SHARED


def test_a_wait_for_what_no_graph_records_is_for_the_program(tmp_path: Path) -> None:
    spool = with_event(tmp_path)
    spool.event_gone(EVENT)
    graph = one_graph(spool, event_node(EVENT, record=False))
    assert graph.reason_code == EVENT_SHARED, "the handle is no event any more"


def test_a_wait_for_what_only_the_program_recorded(tmp_path: Path) -> None:
    spool = with_event(tmp_path)
    spool.graph(0x90, body([event_node(EVENT, record=False)]), ("s", "1"))
    spool.event_gone(EVENT)
    (graph,) = packed(spool)[0].graphs
    assert (graph.reason_code, graph.reason) == (EVENT_SHARED, "waits for event 0, which no graph records")


@pytest.mark.parametrize("label", [("", ""), ("s", "2")])
def test_a_graph_that_is_not_restored_takes_those_along_that_share_its_events(
    tmp_path: Path, label: tuple[str, str]
) -> None:
    spool = with_event(tmp_path)
    spool.event(OTHER)
    spool.graph(0x90, PAIR, ("s", "1"))
    spool.graph(0x91, body([event_node(EVENT, record=False), event_node(OTHER)]), label)
    spool.graph(0x92, body([event_node(OTHER, record=False)]), ("s", "3"))
    spool.graph(0x93, body([empty_node(), refused_node(3, "a host function")]), ("s", "4"))
    if label[0]:
        spool.exec_changed(0x91, "cuGraphExecUpdate")
    spool.event_gone(EVENT)
    spool.event_gone(OTHER)
    process, _ = packed(spool)
    assert [graph.reason_code for graph in process.graphs[:3]] == [
        EVENT_SHARED,
        EXEC_CHANGED if label[0] else EVENT_SHARED,
        EVENT_SHARED,
    ]
    name = process.graphs[1].name
    assert process.graphs[0].reason == f"graph {name}, which is not restored, uses event 0, too"
    assert [graph.reason_code for graph in process.graphs[3:]] == ["node-unsupported"]


@pytest.mark.parametrize("held", [EVENT, OTHER])
def test_events_that_no_graph_names_do_not_count(tmp_path: Path, held: int) -> None:
    """The graph was never launched, so that it is judged at the end, when the program holds one of the two events."""
    spool = with_event(tmp_path)
    spool.event(OTHER, 2)
    spool.graph(0x90, body([event_node(OTHER)]), ("s", "1"))
    spool.event_gone(EVENT if held == OTHER else OTHER)
    assert reasons(spool) == [EVENT_SHARED if held == OTHER else ""]
