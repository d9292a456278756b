"""A server whose engine runs in a process of its own, captured while it serves and restored, on the simulator."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers.caching_program import triton_kernel
from helpers.commandline import read_until
from helpers.serving import Place, Running

from foundry import archive

SIZES = (1, 2, 3, 4, 5, 6, 7, 8)
GRAPHS = len(SIZES) * (1 + 3)
OPTIONS = ("--sizes", ",".join(map(str, SIZES)))
MODES = ("FULL", "PIECEWISE")
REQUESTS = [
    {"tokens": [100 * number + row for row in range(size)], "mode": mode}
    for number, (size, mode) in enumerate((size, mode) for _ in range(4) for size in SIZES for mode in MODES)
]
STARTS = 20
NOTES = 3
"""Graphs without nodes, in which the adapter for transformers keeps text."""
SLOW = "cuGraphInstantiateWithFlags:1+:100"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What a plain server answers."""
    place = Place(tmp_path_factory.mktemp("plain"))
    with place.start(options=OPTIONS) as server:
        server.wait_until_ready()
        found = [server.generate(request) for request in REQUESTS]
        assert server.end()[0] == 0
    return found


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory, answers: list[Any]) -> Path:
    """The archive of a server that was captured while it served, and ended after that."""
    place = Place(tmp_path_factory.mktemp("captured"))
    words = ("capture", "--sim", "--ready", "URL", "-o", place.archive)
    with place.start(*words, options=OPTIONS, FOUNDRY_SIM_HANG="cuGraphInstantiateWithFlags:1+:5") as server:
        assert server.process.stderr
        told = read_until(server.process.stderr, "wrote")
        assert f"ready ({server.address}/health answers), writing the archive" in told
        assert sum(len(process.graphs) for process in archive.read(place.archive).processes) >= GRAPHS
        assert [server.generate(request) for request in REQUESTS] == answers, "it serves on"
        # Built for the first requests, so that the archive is written once more when all memory is given back.
        triton_kernel(place.line.folder / "home" / ".triton" / "cache" / "LATE", "first_request")
        code, errors = server.end()
        assert code == 0
        assert "wrote" in errors
    place.nothing_is_left()
    return place.archive


@pytest.fixture
def place(tmp_path: Path, captured: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    shutil.copy(captured, made.archive)
    yield made
    made.nothing_is_left()


def test_the_archive_that_is_written_when_it_is_ready_has_every_graph(captured: Path) -> None:
    sets = [graph.set for process in archive.read(captured).processes for graph in process.graphs]
    assert (sets.count("vllm/full"), sets.count("vllm/pieces")) == (len(SIZES), 3 * len(SIZES))


def at_once(server: Running, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(requests)) as clients:
        return list(clients.map(server.generate, requests))


def test_many_requests_at_once_are_answered_as_they_are_one_by_one(place: Place, answers: list[Any]) -> None:
    with place.restore("--report", "report.json", options=OPTIONS, FOUNDRY_SIM_HANG=SLOW) as server:
        server.wait_until_ready()
        assert at_once(server, REQUESTS) == answers
        assert server.end()[0] == 0
    report = place.told()
    assert (report["graphs_restored"], report["graphs_given_up"]) == (GRAPHS, 0)
    assert report["counters"]["stream_captures"] == 0


def test_requests_at_once_get_their_graphs_while_the_background_still_builds_others(tmp_path: Path) -> None:
    """64 of them, as soon as the server is ready; most of their shapes came up while the captured server served."""
    place, options = Place(tmp_path, "serve_transformers"), ("--most-tokens", "24")
    requests = [{"tokens": [100 * number + row for row in range(1 + number % 24)]} for number in range(64)]
    with place.start("capture", "--sim", "--ready", "URL", "-o", place.archive, options=options) as server:
        server.wait_until_ready()
        wanted = [server.generate(request) for request in requests]
        assert server.end()[0] == 0
    assert [len(process.graphs) for process in archive.read(place.archive).processes] == [24 + NOTES]
    slower = SLOW.replace(":100", ":200")
    with place.restore("--report", "report.json", options=options, FOUNDRY_SIM_HANG=slower) as server:
        server.wait_until_ready()
        assert at_once(server, requests) == wanted
        assert server.end()[0] == 0
    report = place.told()
    assert (report["graphs_restored"], report["graphs_given_up"]) == (24, 0)
    assert report["counters"]["stream_captures"] == 0
    (process,) = report["processes"]
    assert process["moments"]["commit"] + 0.3 < process["moments"]["last_built"]
    place.nothing_is_left()


@pytest.mark.skipif(" " in sys.executable or len(sys.executable) > 120, reason="the kernel reads no such first line")
def test_a_server_that_is_a_console_script_is_found_again(tmp_path: Path, answers: list[Any]) -> None:
    place = Place(tmp_path)
    place.install()
    with place.start("capture", "--sim", "--ready", "URL", "--stop-when-ready", options=OPTIONS) as server:
        code, errors = server.over()
        assert (code, "wrote `" in errors) == (0, True), errors
    with place.start("restore", "--sim", "--report", "report.json", options=OPTIONS) as server:
        server.wait_until_ready()
        assert [server.generate(request) for request in REQUESTS[:16]] == answers[:16]
        assert server.end()[0] == 0
    assert place.told()["graphs_restored"] == GRAPHS
    place.nothing_is_left()


@pytest.mark.parametrize("words", [("--report", "report.json"), ()], ids=["its parent", "become it"])
def test_a_terminated_server_ends_well(place: Place, words: tuple[str, ...]) -> None:
    with place.restore(*words, options=OPTIONS) as server:
        server.wait_until_ready()
        assert server.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("words", [("--report", "report.json"), ()], ids=["its parent", "become it"])
def test_one_that_is_terminated_before_it_is_ready_ends_well(place: Place, words: tuple[str, ...]) -> None:
    with place.restore(*words, options=OPTIONS, FOUNDRY_SIM_HANG=SLOW) as server:
        while server.get("/health")[0] == 0:
            assert server.process.poll() is None
        assert server.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("words", [("--report", "report.json"), ()], ids=["its parent", "become it"])
@pytest.mark.parametrize("when", ["while graphs are built", "while it serves"])
def test_a_dead_engine_is_the_servers_to_tell_and_the_next_start_is_whole(
    place: Place, words: tuple[str, ...], when: str, answers: list[Any]
) -> None:
    """C14."""
    slow = {"FOUNDRY_SIM_HANG": SLOW} if when == "while graphs are built" else {}
    with place.restore(*words, options=OPTIONS, **slow) as server:
        server.wait_until_ready()
        os.kill(server.engine(), signal.SIGKILL)
        code, errors = server.over()
    assert (code, "the engine is gone" in errors) == (1, True)
    place.nothing_is_left()
    with place.restore("--report", "report.json", options=OPTIONS) as server:
        server.wait_until_ready()
        assert [server.generate(request) for request in REQUESTS[:16]] == answers[:16]
        assert server.end()[0] == 0
    assert place.told()["graphs_restored"] == GRAPHS


def test_start_after_start_is_the_same_and_leaves_nothing(place: Place, answers: list[Any]) -> None:
    """C69: some end well, some are killed, some lose their engine."""
    kept: set[str] = set()
    for turn in range(STARTS):
        with place.restore("--json", options=OPTIONS) as server:
            server.wait_until_ready()
            assert [server.generate(request) for request in REQUESTS[:16]] == answers[:16], turn
            how = turn % 3
            if how == 1:
                server.process.kill()
            elif how == 2:
                os.kill(server.engine(), signal.SIGKILL)
            code, errors = server.over() if how else server.end()
        assert code == (0, -signal.SIGKILL, 1)[how], errors
        if how != 1:
            assert f'"graphs_restored": {GRAPHS}' in errors, turn
        place.nothing_is_left()
        if turn < 2:
            kept = place.files()
    assert place.files() == kept


def test_an_archive_of_other_settings_is_refused_by_name_and_the_server_serves(place: Place) -> None:
    options = (*OPTIONS, "--max-len", "32")
    with place.start(options=options) as server:
        server.wait_until_ready()
        wanted = [server.generate(request) for request in REQUESTS[:16]]
        assert server.end()[0] == 0
    with place.restore("--report", "report.json", options=options) as server:
        server.wait_until_ready()
        assert [server.generate(request) for request in REQUESTS[:16]] == wanted
        code, errors = server.end()
    assert code == 0
    assert "vllm: graphs are captured as always: another max_model_len: recorded 64, found 32" in errors
    assert place.told()["graphs_restored"] == 0


def test_a_damaged_archive_costs_the_graphs_and_not_the_server(place: Place, answers: list[Any]) -> None:
    place.archive.write_bytes(place.archive.read_bytes()[:-100])
    with place.restore(options=OPTIONS) as server:
        server.wait_until_ready()
        assert [server.generate(request) for request in REQUESTS[:16]] == answers[:16]
        code, errors = server.end()
    assert (code, "starting without restore" in errors) == (0, True)
