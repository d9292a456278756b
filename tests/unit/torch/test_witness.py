"""Witnesses of torch graphs: made at capture, compared on a restore, without a trace in either."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from foundry import env
from foundry.capi import Mode


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (env.WITNESS, env.CHECK):
        monkeypatch.delenv(name, raising=False)


class Program:
    """Two graphs over an input x, an index, and a cache that each of them writes."""

    def __init__(self, world: Any, *, factor: int = 2, **options: Any) -> None:
        torch = world.torch
        self.world, self.factor = world, factor
        self.x, self.cache = torch.empty(4), torch.empty(8)
        self.index = torch.empty(1, dtype=torch.int64)
        for tensor, value in ((self.x, 5), (self.cache, 7), (self.index, 1)):
            tensor.fill_(value)
        self.graphs = world.graph_set(watched=[self.cache], **options)
        self.held = [self.get(key) for key in (8, 4)]

    def get(self, key: int) -> Any:
        return self.graphs.capture_or_restore(key, self.step(key), (self.x, self.index))

    def step(self, key: int, factor: int | None = None) -> Callable[..., Any]:
        torch = self.world.torch

        def step(x: Any, index: Any) -> Any:
            out = torch.empty(4)
            torch.run(work(torch.cells, key, x, index, self.cache, out, factor or self.factor))
            return out

        return step

    def cells(self) -> dict[str, Any]:
        cells = self.world.torch.cells
        return {
            name: cells.get(tensor.data_ptr())
            for name, tensor in (("x", self.x), ("cache", self.cache), ("index", self.index))
        }


def work(cells: dict[int, Any], key: int, x: Any, index: Any, cache: Any, out: Any, factor: int) -> Any:
    places = [tensor if isinstance(tensor, int) else tensor.data_ptr() for tensor in (x, index, cache, out)]

    def kernel() -> None:
        value, at, before = (cells[place] for place in places[:3])
        cells[places[3]] = key * 100_000 + value * factor + at
        cells[places[2]] = before + value

    return kernel


def also(right: Callable[[], None], cells: dict[int, Any], place: int) -> Callable[[], None]:
    """Do the right thing, and write to one more place."""

    def kernel() -> None:
        right()
        cells[place] = 1

    return kernel


def restored(start: Any, captured: Any, *, factor: int = 2, **more: Any) -> Program:
    """Restore; the driver's kernels do what the captured ones did, with that factor for key 4."""
    world = start(Mode.RESTORE, captured)
    for (_, key), text in captured.hook.archive.items():
        metadata = json.loads(text)
        out = metadata["outputs"]["storages"][0]["pointer"]
        x, index = (entry["pointer"] for entry in metadata["inputs"])
        cache = x + 0x200000
        used = factor if key == "4" else 2
        world.hook.kernels[key] = work(world.torch.cells, int(key), x, index, cache, out, used)
    return Program(world, **more)


@pytest.fixture
def captured(start: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(env.WITNESS, "1")
    world = start(Mode.CAPTURE)
    world.program = Program(world)
    monkeypatch.delenv(env.WITNESS)
    return world


def witness_of(world: Any, key: str = "8") -> Any:
    return json.loads(world.hook.archive["decode", key]).get("witness")


def test_a_capture_without_the_wish_makes_none(start: Any) -> None:
    world = start(Mode.CAPTURE)
    Program(world)
    assert witness_of(world) is None
    assert not any("witness" in name for name in world.hook.totals)


@pytest.mark.parametrize("by", ["environment", "argument"])
def test_a_witness_leaves_what_a_capture_without_one_leaves(
    start: Any, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    plain = start(Mode.CAPTURE)
    one = Program(plain)
    if by == "environment":
        monkeypatch.setenv(env.WITNESS, "1")
    world = start(Mode.CAPTURE)
    other = Program(world, **({"witness": True} if by == "argument" else {}))
    assert other.cells() == one.cells()
    assert world.hook.totals["witness_made"] == 2
    outside = [event for event in world.torch.events if "allocate" in event and "scratch" not in event]
    assert outside == [event for event in plain.torch.events if "allocate" in event and "scratch" not in event]
    generator = world.torch.cuda.default_generators[0]
    assert (generator.initial_seed(), generator.get_offset()) == (0, 0)
    assert (world.hook.scratch_depth, world.hook.label) == (0, None)
    found = witness_of(world)
    assert set(found["found"]) == {"output", "what it wrote to watched[0]"}
    assert found["stated"]["kept"].keys() == {"input[1]"}


def test_a_right_restore_is_checked_and_leaves_no_trace(
    start: Any, captured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env.CHECK, "1")
    program = restored(start, captured)
    assert [graph.restored for graph in program.held] == [True, True]
    assert program.world.hook.totals["witness_equal"] == 2
    assert program.cells() == {"x": 5, "cache": 7, "index": 1}
    assert program.world.hook.scratch_depth == 0


def test_a_check_is_made_before_the_first_use_and_only_when_asked_for(start: Any, captured: Any) -> None:
    program = restored(start, captured)
    assert [event for event in program.world.hook.events if "launch" in event] == []
    assert not any("witness" in name for name in program.world.hook.totals)


def test_a_graph_that_computes_something_else_is_given_up_and_captured(
    start: Any, captured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env.CHECK, "1")
    program = restored(start, captured, factor=3)
    hook = program.world.hook
    assert [graph.restored for graph in program.held] == [True, False]
    assert program.held[1].reason == "witness-differs: output is not what it was at the capture"
    assert hook.given_up == {"4": program.held[1].reason}
    assert (hook.totals["witness_equal"], hook.totals["witness_differs"], hook.totals["captures_run"]) == (1, 1, 1)
    assert program.cells()["x"] == 5
    program.held[1].replay()
    assert program.world.torch.cells[program.held[1].outputs.data_ptr()] == 4 * 100_000 + 5 * 2 + 1


def test_a_graph_that_writes_something_else_is_given_up(
    start: Any, captured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env.CHECK, "1")
    world = start(Mode.RESTORE, captured)
    for (_, key), text in captured.hook.archive.items():
        out = json.loads(text)["outputs"]["storages"][0]["pointer"]
        x, index = (entry["pointer"] for entry in json.loads(text)["inputs"])
        cells, cache = world.torch.cells, x + 0x200000
        right = work(cells, int(key), x, index, cache, out, 2)
        world.hook.kernels[key] = also(right, cells, cache + 8)
    program = Program(world)
    assert [graph.restored for graph in program.held] == [False, False]
    assert "what it wrote to watched[0]" in program.held[0].reason


def test_an_archive_without_witnesses_is_restored_and_told_so(
    start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = start(Mode.CAPTURE)
    Program(world)
    monkeypatch.setenv(env.CHECK, "1")
    program = restored(start, world)
    assert all(graph.restored for graph in program.held)
    assert program.world.hook.totals["witness_missing"] == 2
    assert caplog.text.count("witness-missing: captured without `--witness`") == 1


def test_a_state_that_is_not_the_captures_is_told_and_judges_nothing(
    start: Any, captured: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    archive = captured.hook.archive
    text = json.loads(archive["decode", "4"])
    text["witness"]["stated"]["kept"]["input[1]"] = "0" * 64
    archive["decode", "4"] = json.dumps(text)
    monkeypatch.setenv(env.CHECK, "1")
    program = restored(start, captured, factor=3)
    assert [graph.restored for graph in program.held] == [True, True]
    assert program.world.hook.totals["witness_state"] == 1
    assert "witness-state: the state differs from the capture's in input[1]" in caplog.text


def test_a_graph_that_gives_two_results_is_not_judged(
    start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(env.WITNESS, "1")
    world = start(Mode.CAPTURE)
    runs: list[int] = []

    def step(x: Any) -> Any:
        out = world.torch.empty(1)

        def kernel() -> None:
            runs.append(1)
            world.torch.cells[out.data_ptr()] = len(runs)

        world.torch.run(kernel)
        return out

    x = world.torch.empty(4)
    world.graph_set().capture_or_restore(8, step, (x,))
    assert witness_of(world) == {"format": 1, "unsteady": "output"}
    assert world.hook.totals["witness_unsteady"] == 1
    monkeypatch.setenv(env.CHECK, "1")
    again = start(Mode.RESTORE, world)
    x = again.torch.empty(4)
    graph = again.graph_set().capture_or_restore(8, step, (x,))
    assert graph.restored
    assert again.hook.totals["witness_unsteady"] == 1
    assert "two replays from the same state differ in output" in caplog.text


@pytest.mark.parametrize("why", ["room", "integers"])
def test_state_that_is_too_large_makes_no_witness(start: Any, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    monkeypatch.setenv(env.WITNESS, "1")
    world = start(Mode.CAPTURE)
    import foundry.torch.spans
    import foundry.torch.witness

    if why == "room":
        foundry.torch.spans.room = lambda device: 100
    else:
        foundry.torch.witness.LARGEST = 7
    program = Program(world)
    assert "bytes" in witness_of(world)["missing"]
    assert world.hook.totals["witness_missing"] == 2
    assert program.held[0].reason is None


@pytest.mark.parametrize("broken", [{"format": 1}, {"format": 2}, 3, {"format": 1, "chosen": {"seed": 1}}, None])
def test_a_witness_that_cannot_be_read_judges_nothing(
    start: Any, captured: Any, monkeypatch: pytest.MonkeyPatch, broken: Any
) -> None:
    archive = captured.hook.archive
    archive["decode", "8"] = json.dumps({**json.loads(archive["decode", "8"]), "witness": broken})
    monkeypatch.setenv(env.CHECK, "1")
    program = restored(start, captured)
    assert all(graph.restored for graph in program.held)
    assert program.world.hook.totals["witness_missing"] == 1
    assert program.cells() == {"x": 5, "cache": 7, "index": 1}


def test_a_launch_that_fails_gives_the_graph_up(start: Any, captured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.CHECK, "1")
    world = start(Mode.RESTORE, captured)
    world.hook.launch_result = 700
    program = Program(world)
    assert not program.held[0].restored
    assert program.held[0].reason.startswith("witness-differs: the replay failed")


def test_random_numbers_are_witnessed_and_the_generator_stays(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.WITNESS, "1")
    world = start(Mode.CAPTURE)
    generator = world.torch.cuda.default_generators[0]
    generator.manual_seed(9)
    generator.set_offset(40)

    def draw() -> Any:
        return world.torch.empty(1).uniform_()

    world.graph_set().capture_or_restore(1, draw, warm_ups=0)
    assert witness_of(world, "1")["found"].keys() == {"output"}
    assert (generator.initial_seed(), generator.get_offset()) == (9, 40)
    monkeypatch.setenv(env.CHECK, "1")
    for within, equal in ((0, True), (4, False)):
        again = start(Mode.RESTORE, world)
        again.hook.kernels["1"] = drawn(again.torch.cells, json.loads(world.hook.archive["decode", "1"]), within)
        generator = again.torch.cuda.default_generators[0]
        generator.manual_seed(9)
        generator.set_offset(40)
        torch = again.torch
        graph = again.graph_set().capture_or_restore(1, lambda torch=torch: torch.empty(1).uniform_(), warm_ups=0)
        assert graph.restored is equal, graph.reason
        assert (generator.initial_seed(), generator.get_offset()) == (9, 40)


def drawn(cells: dict[int, Any], metadata: Any, within: int) -> Callable[[], None]:
    """What a restored graph's kernel draws, from where seed and offset lie."""
    out, place = metadata["outputs"]["storages"][0]["pointer"], metadata["random"]

    def kernel() -> None:
        cells[out] = (cells[place["seed"]] % 2**64, cells[place["offset"]] + within)

    return kernel


def test_outputs_of_earlier_graphs_survive(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later graph of the pool may lie over them: here it writes there."""
    monkeypatch.setenv(env.WITNESS, "1")
    world = start(Mode.CAPTURE)
    torch = world.torch
    x = torch.empty(4)
    x.fill_(1)
    graphs = world.graph_set()

    def first(x: Any) -> Any:
        return torch.empty(4).fill_(3)

    one = graphs.capture_or_restore(1, first, (x,))
    one.replay()

    def second(x: Any) -> Any:
        torch.run(lambda: torch.cells.update({one.outputs.data_ptr(): 99}))
        return None

    graphs.capture_or_restore(2, second, (x,), warm_ups=0)
    assert torch.cells[one.outputs.data_ptr()] == 3


def counting(cells: dict[int, Any], place: int, out: int) -> Callable[[], None]:
    """Give what stood in a counter, and count on."""

    def kernel() -> None:
        cells[out] = cells[place] * 10
        cells[place] += 1

    return kernel


@pytest.mark.parametrize("warm_ups", [0, 3])
def test_integers_are_those_from_before_the_warm_up(start: Any, monkeypatch: pytest.MonkeyPatch, warm_ups: int) -> None:
    def program(world: Any) -> tuple[Any, int]:
        counter = world.torch.empty(1, dtype=world.torch.int64)
        counter.fill_(4)

        def step(counter: Any) -> Any:
            out = world.torch.empty(1)
            world.torch.run(counting(world.torch.cells, counter.data_ptr(), out.data_ptr()))
            return out

        graph = world.graph_set().capture_or_restore(1, step, (counter,), warm_ups=warm_ups)
        return graph, world.torch.cells[counter.data_ptr()]

    monkeypatch.setenv(env.WITNESS, "1")
    world = start(Mode.CAPTURE)
    assert program(world)[1] == 4 + warm_ups
    monkeypatch.setenv(env.CHECK, "1")
    again = start(Mode.RESTORE, world)
    metadata = json.loads(world.hook.archive["decode", "1"])
    place, out = metadata["inputs"][0]["pointer"], metadata["outputs"]["storages"][0]["pointer"]
    again.hook.kernels["1"] = counting(again.torch.cells, place, out)
    graph, value = program(again)
    assert (graph.restored, value) == (True, 4)
    assert again.hook.totals["witness_equal"] == 1


def test_what_lay_in_an_output_that_is_not_written_does_not_matter(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.WITNESS, "1")
    world = start(Mode.CAPTURE)
    x = world.torch.empty(4)
    world.graph_set().capture_or_restore(1, lambda x: world.torch.empty(4), (x,))
    monkeypatch.setenv(env.CHECK, "1")
    again = start(Mode.RESTORE, world)
    out = json.loads(world.hook.archive["decode", "1"])["outputs"]["storages"][0]["pointer"]
    again.torch.cells[out] = 12345
    x = again.torch.empty(4)
    assert again.graph_set().capture_or_restore(1, lambda x: None, (x,)).restored
    assert again.torch.cells[out] == 12345
