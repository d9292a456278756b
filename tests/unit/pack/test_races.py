"""Which allocations of several threads may change places."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from helpers.spool_writer import BASE, SpoolWriter, body, memset_node
from hypothesis import given
from hypothesis import strategies as st

from foundry.pack import pack
from foundry.pack.races import SHARED_ORDINAL, Allocators, racing


def test_one_thread_races_with_nobody() -> None:
    assert racing([(0, 0, 64)] * 5, Allocators()) == set()


def test_two_threads_that_take_one_size_may_change_places() -> None:
    assert racing([(0, 1, 64), (0, 2, 64), (0, 1, 32), (0, 2, 16)], Allocators()) == {0, 1}


def test_other_sizes_and_other_devices_are_told_apart() -> None:
    assert racing([(0, 1, 64), (1, 2, 64), (0, 3, 65)], Allocators()) == set()


def test_a_thread_that_ended_comes_before() -> None:
    known = Allocators(ended={1: 2})
    assert racing([(0, 1, 64), (0, 2, 64), (0, 2, 64)], known) == {0, 1}


def test_what_was_there_before_a_thread_was_born_comes_first() -> None:
    assert racing([(0, 0, 64), (0, 0, 64), (0, 1, 64)], Allocators(born={1: 2})) == set()
    assert racing([(0, 0, 64), (0, 0, 64), (0, 1, 64)], Allocators(born={1: 1})) == {1, 2}


def test_threads_without_a_number_of_their_own_are_never_in_order() -> None:
    known = Allocators(ended={0: 1, SHARED_ORDINAL: 2})
    assert racing([(0, 0, 64), (0, SHARED_ORDINAL, 64), (0, SHARED_ORDINAL, 32)], known) == {0, 1, 2}


Step = tuple[int, int]


def _orders(sequences: dict[int, list[int]]) -> set[tuple[Step, ...]]:
    """List all orders in which the threads' allocations may come, each as (thread, number in the thread)."""
    threads = [thread for thread, sizes in sequences.items() for _ in sizes]
    found = set()
    for order in set(itertools.permutations(threads)):
        count: dict[int, int] = {}
        steps = []
        for thread in order:
            steps.append((thread, count.get(thread, 0)))
            count[thread] = count.get(thread, 0) + 1
        found.add(tuple(steps))
    return found


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), min_size=2, max_size=6))
def test_all_that_can_change_places_unseen_is_found(entries: list[tuple[int, int]]) -> None:
    """By trying all orders: where all sizes come in the same order, only what races can be another's."""
    sequences: dict[int, list[int]] = {}
    for thread, size in entries:
        sequences.setdefault(thread, []).append(size)
    count: dict[int, int] = {}
    captured = []
    for thread, _ in entries:
        captured.append((thread, count.get(thread, 0)))
        count[thread] = count.get(thread, 0) + 1
    sizes = [size for _, size in entries]
    found = racing([(0, thread, size) for thread, size in entries], Allocators())
    for order in _orders(sequences):
        if [sequences[thread][number] for thread, number in order] == sizes:
            assert {at for at in range(len(sizes)) if order[at] != captured[at]} <= found


@pytest.mark.parametrize("ready", [False, True])
def test_a_graph_that_points_to_such_memory_is_not_restorable(tmp_path: Path, ready: bool) -> None:
    spool = SpoolWriter(tmp_path)
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.allocation(BASE, 4096)
    if ready:  # what comes later comes later in the next run, too
        spool.graph(0x90, body([memset_node(BASE)]), ("set", "key"), 0xC0)
        spool.commit()
    spool.thread = 3
    spool.allocator(3)
    spool.allocation(BASE + 4096, 4096, 0, 1)
    spool.thread = 0
    if not ready:
        spool.graph(0x90, body([memset_node(BASE)]), ("set", "key"), 0xC0)
    capture, findings = pack(spool.write())
    (graph,) = capture.processes[0].graphs
    if ready:
        assert graph.restorable
        return
    assert graph.reason_code == "allocation-race"
    assert [(told.code, told.text) for told in findings if told.code == graph.reason_code] == [
        (
            "allocation-race",
            "not restorable: points to memory (allocation 0 of 4096 bytes by thread 0) that may change places with "
            "another thread's in the next run",
        )
    ]
