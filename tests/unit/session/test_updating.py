"""What an update makes of the archive and of a run, on captures of the test's own."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from helpers.varied import varied_capture

from foundry.errors import NotUpdatedError
from foundry.model import Capture, Graph, StartFile
from foundry.session.updating import added, merged


def capture() -> Capture:
    """A capture of one process with named graphs and files."""
    for seed in range(1000):
        found = varied_capture(random.Random(seed), processes=1)
        named = [graph for process in found.processes for graph in process.graphs if graph.set]
        if len(named) >= 2 and found.files:
            return replace(found, start_files=(StartFile("/a", 1),))
    raise AssertionError("no seed makes one")


def without(found: Capture, graph: Graph) -> Capture:
    (process,) = found.processes
    kept = tuple(one for one in process.graphs if one is not graph)
    return replace(found, processes=(replace(process, graphs=kept),))


def named(found: Capture) -> list[Graph]:
    return [graph for graph in found.processes[0].graphs if graph.set]


def test_the_same_is_no_change() -> None:
    whole = capture()
    assert added(whole, merged(whole, whole, {})) == set()


def test_a_graph_more_is_added_and_the_rest_is_the_archives() -> None:
    whole = capture()
    role, graph = whole.processes[0].role, named(whole)[-1]
    before = without(whole, graph)
    made = merged(before, replace(whole, files=(), start_files=(), context={"argv": "other"}), {})
    assert added(before, made) == {(role, graph.set, graph.key)}
    assert (made.context, made.start_files) == (before.context, before.start_files)
    held = {(file.cache, file.path, file.mode, made.blobs[file.blob]) for file in made.files}
    assert held == {(file.cache, file.path, file.mode, before.blobs[file.blob]) for file in before.files}


def test_a_graph_less_is_refused_by_name_with_the_reason() -> None:
    whole = capture()
    role, graph = whole.processes[0].role, named(whole)[0]
    reasons = {(role, graph.set, graph.key): "its memory is elsewhere"}
    place = f"{role}: graph {graph.set}/{graph.key} did not come back: "
    for after in (without(whole, graph), whole):
        with pytest.raises(NotUpdatedError) as caught:
            merged(whole, after, reasons)
        assert f"{place}its memory is elsewhere" in str(caught.value)
    with pytest.raises(NotUpdatedError) as caught:
        merged(whole, without(whole, graph), {})
    assert f"{place}it was not built in this run" in str(caught.value)


def test_another_graph_under_its_name_is_refused() -> None:
    whole = capture()
    (process,) = whole.processes
    at = next(index for index, graph in enumerate(process.graphs) if graph.set)
    graphs = list(process.graphs)
    graphs[at] = replace(graphs[at], metadata=graphs[at].metadata + "!")
    with pytest.raises(NotUpdatedError, match="metadata"):
        merged(whole, replace(whole, processes=(replace(process, graphs=tuple(graphs)),)), {})


def test_all_that_changed_is_named() -> None:
    whole = capture()
    (process,) = whole.processes
    graphs = tuple(
        replace(graph, metadata=graph.metadata + "!", instantiate_flags=graph.instantiate_flags ^ 1)
        for graph in process.graphs
    )
    with pytest.raises(NotUpdatedError) as caught:
        merged(whole, replace(whole, processes=(replace(process, graphs=graphs),)), {})
    first, more = named(whole)[0], 2 * len(named(whole)) - 1
    assert f"{process.role}: graph {first.set}/{first.key}: metadata: " in str(caught.value)
    assert f"! (and {more} more: instantiate flags, metadata)" in str(caught.value)


def test_graphs_that_nobody_named_may_differ() -> None:
    whole = capture()
    (process,) = whole.processes
    unnamed = replace(
        process, graphs=tuple(replace(graph, set="", key=f"#{n}") for n, graph in enumerate(named(whole)))
    )
    before = replace(whole, processes=(unnamed,))
    assert len(added(before, merged(before, whole, {}))) == len(named(whole))


def test_other_processes_are_refused() -> None:
    whole = capture()
    (process,) = whole.processes
    two = replace(whole, processes=(process, replace(process, role="python-9")))
    with pytest.raises(NotUpdatedError, match="the process python-9 is not in the archive"):
        merged(whole, two, {})
    with pytest.raises(NotUpdatedError, match="the process python-9 did not use CUDA in this run"):
        merged(two, whole, {})
