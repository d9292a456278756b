from __future__ import annotations

import json
from typing import Any

import pytest

from foundry.capi import Mode


def draws(world: Any, times: int) -> Any:
    """A step that draws that often; the last draw tells which seed and offset its kernel read."""

    def step() -> Any:
        out = world.torch.empty(1)
        for _ in range(times):
            out.uniform_()
        return out

    return step


def sequence(world: Any, *, warm_ups: int = 1) -> list[Any]:
    """Seed, get graphs, replay them between eager draws and other seeds; return everything that was drawn."""
    torch = world.torch
    generator = torch.cuda.default_generators[0]
    generator.manual_seed(7)
    graphs = world.graph_set()
    held = [graphs.capture_or_restore(times, draws(world, times), warm_ups=warm_ups) for times in (3, 0, 1)]
    eager = torch.empty(1)
    found: list[Any] = [generator.get_offset()]
    for seed in (None, 1, 1, 2, 2**63 + 5):
        if seed is not None:
            generator.manual_seed(seed)
        for graph in (held[0], held[2], held[1], held[0]):
            replay(world, graph)
            found.append(torch.cells.get(graph.outputs.data_ptr()))
        eager.uniform_()
        found.append((eager.item(), generator.get_offset()))
    world.held = held
    return found


def replay(world: Any, graph: Any) -> None:
    """Replay; a restored graph's kernels run here as the driver would run them."""
    graph.replay()
    if graph.restored:
        for kernel in world.kernels[graph.key]:
            kernel(world.torch.cells)


def restored_world(start: Any, captured: Any) -> Any:
    """A restore whose driver reads the two cells that the archive's kernels point at."""
    world = start(Mode.RESTORE, captured)
    world.kernels = {}
    for (_, key), text in captured.hook.archive.items():
        metadata = json.loads(text)
        if "refused" in metadata or not metadata["random"]["consumed"]:
            world.kernels[key] = []
            continue
        out = metadata["outputs"]["storages"][0]["pointer"]
        place, within = metadata["random"], metadata["random"]["consumed"] - 4

        def kernel(cells: dict[int, Any], out: int = out, place: Any = place, within: int = within) -> None:
            cells[out] = (cells[place["seed"]] % 2**64, cells[place["offset"]] + within)

        world.kernels[key] = [kernel]
    return world


@pytest.mark.parametrize("warm_ups", [0, 1, 3])
def test_restored_graphs_draw_what_plain_torch_draws(start: Any, warm_ups: int) -> None:
    plain = sequence(start(), warm_ups=warm_ups)
    captured = start(Mode.CAPTURE)
    assert sequence(captured, warm_ups=warm_ups) == plain
    restored = restored_world(start, captured)
    assert sequence(restored, warm_ups=warm_ups) == plain
    assert all(graph.restored for graph in restored.held)
    assert len({str(value) for value in plain[6:11]} & {str(value) for value in plain[16:21]}) <= 1


def test_what_a_graph_consumes_is_measured_not_guessed(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    sequence(captured)
    consumed = {key: json.loads(text)["random"]["consumed"] for (_, key), text in captured.hook.archive.items()}
    assert consumed == {"3": 12, "0": 0, "1": 4}


def test_more_graphs_than_torch_has_streams_can_be_stored(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    graphs = captured.graph_set()
    for key in range(70):
        graphs.capture_or_restore(key, draws(captured, 1))
    assert graphs.reasons == {}
    found = [json.loads(text)["random"]["consumed"] for text in captured.hook.archive.values()]
    assert found == [4] * 70


def test_a_probe_that_fails_refuses_the_graph_and_leaves_the_program_alone(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    graphs = captured.graph_set()
    graphs.capture_or_restore("good", draws(captured, 1))
    captured.torch.cuda.Stream = None  # nothing new may be needed for the second
    from foundry.torch.random_state import generator_state

    state = generator_state(captured.torch.device("cuda", 0))
    state.consumed = lambda *_, **__: (_ for _ in ()).throw(RuntimeError("refused\nwith details"))
    graph = graphs.capture_or_restore("bad", draws(captured, 1))
    assert not graph.restored
    assert "refused the probe: refused" in graphs.reasons["bad"]


def test_a_graph_that_draws_only_in_its_capture_is_known(start: Any) -> None:
    captured = start(Mode.CAPTURE)

    def step() -> Any:
        out = captured.torch.empty(1)
        return out.uniform_() if captured.torch.capturing else out

    captured.graph_set().capture_or_restore("late", step)
    assert json.loads(captured.hook.archive["decode", "late"])["random"]["consumed"] == 4


def test_the_probes_are_not_stored_and_leave_the_generator_alone(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    generator = captured.torch.cuda.default_generators[0]
    generator.manual_seed(3)
    generator.set_offset(40)
    state = generator.state
    captured.graph_set().capture_or_restore("none", draws(captured, 0), warm_ups=0)
    assert list(captured.hook.archive) == [("decode", "none")]
    assert (generator.state, generator.get_offset(), generator.initial_seed()) == (state, 40, 3)
    assert captured.hook.scratch_depth == 0


def test_a_torch_that_keeps_its_state_elsewhere_is_refused_by_name(start: Any) -> None:
    captured = start(Mode.CAPTURE, style="2.13", version="2.13.0")
    graphs = captured.graph_set()
    drawn = graphs.capture_or_restore("draws", draws(captured, 1))
    plain = graphs.capture_or_restore("none", draws(captured, 0))
    unknown = graphs.capture_or_restore("cold", draws(captured, 0), warm_ups=0)
    assert drawn.reason.startswith("random numbers inside the graph: torch 2.13.0")
    assert plain.reason is None
    assert unknown.reason.startswith("random numbers inside the graph")
    restored = start(Mode.RESTORE, captured, style="2.13", version="2.13.0")
    graphs = restored.graph_set()
    assert not graphs.capture_or_restore("draws", draws(restored, 1)).restored


def test_a_generator_that_another_graph_registered_first_is_refused_by_name(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    earlier = captured.torch.cuda.CUDAGraph()
    earlier.register_generator_state(captured.torch.cuda.default_generators[0])
    graph = captured.graph_set().capture_or_restore("draws", draws(captured, 1))
    assert "captured a graph of its own before" in graph.reason


def test_a_pair_that_lies_elsewhere_is_refused(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    captured.graph_set().capture_or_restore("draws", draws(captured, 1))
    text = json.loads(captured.hook.archive["decode", "draws"])
    text["random"]["seed"] += 512
    captured.hook.archive["decode", "draws"] = json.dumps(text)
    graph = start(Mode.RESTORE, captured).graph_set().capture_or_restore("draws", lambda: None)
    assert "keeps its state elsewhere" in graph.reason


def test_a_warm_up_that_seeds_is_refused(start: Any) -> None:
    captured = start(Mode.CAPTURE)

    def step() -> Any:
        if not captured.torch.capturing:
            captured.torch.cuda.default_generators[0].manual_seed(5)
        return captured.torch.empty(1)

    graph = captured.graph_set().capture_or_restore("seeds", step)
    assert "seeds torch's generator" in graph.reason
