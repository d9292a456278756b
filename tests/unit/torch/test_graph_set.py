from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from foundry.capi import Mode


def double(world: Any, log: list[str] | None = None) -> Any:
    """A step that makes one tensor as long as its input."""

    def step(x: Any) -> Any:
        if log is not None:
            log.append("capture" if world.torch.capturing else "run")
        out = world.torch.empty(*x.shape)
        out.fill_(1)
        return out

    return step


def one_graph(world: Any, log: list[str] | None = None, **options: Any) -> Any:
    x = world.torch.empty(4)
    return world.graph_set().capture_or_restore(8, double(world, log), (x,), **options)


def test_a_plain_start_does_what_torch_says(start: Any) -> None:
    world, log = start(), []
    graph = one_graph(world, log, warm_ups=2)
    assert log == ["run", "run", "capture"]
    assert not graph.restored
    assert world.hook.events == ["instantiate"]
    assert "empty cache" not in world.torch.events


def test_warm_up_is_kept_apart_and_the_graph_is_named(start: Any) -> None:
    world, log = start(Mode.CAPTURE), []
    one_graph(world, log)
    assert log == ["run", "capture"]
    assert world.hook.events.count("label decode/8") == 1
    allocated = [event for event in world.torch.events if "allocate" in event]
    outside = [event for event in allocated if not event.startswith("scratch") and event != "allocate (5, 0)"]
    # The input, and the generator's pair in its own pool: nothing else may come from memory that a restore also has.
    assert outside == ["allocate (0, 0)", "allocate (0, 1)", "allocate (0, 1)"]


def test_a_restore_allocates_what_a_capture_allocates_outside_warm_up_and_capture(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    restored = start(Mode.RESTORE, captured)
    log: list[str] = []
    graph = one_graph(restored, log)
    assert (graph.restored, log) == (True, [])
    assert [event for event in restored.torch.events if "allocate" in event] == [
        "allocate (0, 0)", "allocate (0, 1)", "allocate (0, 1)",
    ]  # fmt: skip
    for event in ("clear workspaces", "empty cache"):
        assert event in restored.torch.events
    assert restored.hook.totals["warm_ups_skipped"] == restored.hook.totals["captures_skipped"] == 1
    assert "captures_run" not in restored.hook.totals


def test_a_restored_output_lies_where_it_lay(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    address = one_graph(captured).outputs.data_ptr()
    restored = start(Mode.RESTORE, captured)
    graph = one_graph(restored)
    assert graph.outputs.data_ptr() == address
    graph.replay()
    assert restored.hook.events[-1] == "launch 1000 on 0"


def test_no_workspace_of_the_warm_up_reaches_the_graph(start: Any) -> None:
    world = start(Mode.CAPTURE)
    used: list[tuple[int, int]] = []

    def step(x: Any) -> Any:
        used.append(world.torch.blocks[world.torch.matmul()][0])
        return x

    world.torch.matmul()
    graphs = world.graph_set()
    for key in (8, 4):
        graphs.capture_or_restore(key, step, (world.torch.empty(4),))
    warm_up, captured = used[0], used[1]
    assert captured == (5, 0)
    assert warm_up not in ((0, 0), (5, 0))
    assert used[3] == (5, 0)


def test_other_input_addresses_are_captured_anew(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    restored = start(Mode.RESTORE, captured)
    held = restored.torch.empty(1)
    log: list[str] = []
    graph = one_graph(restored, log)
    assert (graph.restored, log) == (False, ["run", "capture"])
    assert graph.reason.startswith("input[0].pointer: recorded")
    assert restored.hook.given_up == {"8": graph.reason}
    assert restored.hook.archive == captured.hook.archive
    del held


def test_another_layout_of_torchs_memory_is_captured_anew(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    x = captured.torch.empty(4)
    captured.graph_set().capture_or_restore(8, double(captured), (x,))
    restored = start(Mode.RESTORE, captured)
    x = restored.torch.empty(4)
    held = restored.torch.empty(1)
    graph = restored.graph_set().capture_or_restore(8, double(restored), (x,))
    assert not graph.restored
    assert "live allocations" in graph.reason
    del held


class Cycle:
    """Garbage that holds a tensor until it is collected."""

    def __init__(self, held: Any) -> None:
        self.held, self.itself = held, self


def collections(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counted: list[int] = []
    collect = gc.collect
    monkeypatch.setattr(gc, "collect", lambda: counted.append(collect()))
    return counted


def test_a_restore_collects_no_garbage_where_torchs_memory_lies_as_at_capture(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = collections(monkeypatch)
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    assert len(counted) == 1
    assert one_graph(start(Mode.RESTORE, captured)).restored
    assert len(counted) == 1


def test_garbage_that_holds_torchs_memory_is_collected_in_capture_and_restore(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def garbage(world: Any) -> Any:
        x = world.torch.empty(4)
        gc.disable()
        Cycle(world.torch.empty(1))
        return world.graph_set().capture_or_restore(8, double(world), (x,))

    counted = collections(monkeypatch)
    try:
        captured = start(Mode.CAPTURE)
        garbage(captured)
        assert len(counted) == 1
        assert garbage(start(Mode.RESTORE, captured)).restored
        assert len(counted) == 2
    finally:
        gc.enable()


def test_a_watched_tensor_that_moved_is_named(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    x, weight = captured.torch.empty(4), captured.torch.empty(4)
    graphs = captured.foundry_torch.GraphSet("decode", watched=[weight], hook=captured.hook)
    graphs.capture_or_restore(8, double(captured), (x,))
    restored = start(Mode.RESTORE, captured)
    x, weight = restored.torch.empty(4), restored.torch.empty(2, 2)
    graphs = restored.foundry_torch.GraphSet("decode", watched=[weight], hook=restored.hook)
    graph = graphs.capture_or_restore(8, double(restored), (x,))
    assert "watched tensor differs" in graph.reason


def test_a_watched_tensor_that_cannot_be_compared_is_refused(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    weight = captured.torch.empty(4)
    weight.device = captured.torch.device("cpu")
    graphs = captured.foundry_torch.GraphSet("decode", watched=[weight], hook=captured.hook)
    graph = graphs.capture_or_restore(8, double(captured), (captured.torch.empty(4),))
    assert "watched[0] is on cpu" in graph.reason


@pytest.mark.parametrize("version", ["2.10.0", "2.11.1"])
def test_another_torch_is_named(start: Any, version: str) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    graph = one_graph(start(Mode.RESTORE, captured, version=version))
    assert graph.reason == f"captured with torch 2.11.0, this is {version}"


def test_another_allocator_is_left_alone(start: Any) -> None:
    world = start(Mode.CAPTURE)
    world.torch.backend = "cudaMallocAsync"
    graph = one_graph(world)
    assert "cudaMallocAsync" in graph.reason
    assert world.hook.events == ["instantiate"]


def test_outputs_that_cannot_be_held_are_refused_by_name(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    graph = captured.graph_set().capture_or_restore(8, lambda: {1, 2})
    assert graph.outputs == {1, 2}
    assert "output is a set" in graph.reason
    assert json.loads(captured.hook.archive["decode", "8"])["refused"] == graph.reason
    restored = start(Mode.RESTORE, captured)
    again = restored.graph_set().capture_or_restore(8, lambda: {1, 2})
    assert (again.restored, again.outputs) == (False, {1, 2})
    assert "output is a set" in again.reason


def test_a_function_that_fails_leaves_nothing_open(start: Any) -> None:
    world = start(Mode.CAPTURE)

    def step() -> Any:
        if world.torch.capturing:
            raise RuntimeError("no")
        return None

    with pytest.raises(RuntimeError, match="no"):
        world.graph_set().capture_or_restore(8, step)
    assert (world.hook.label, world.hook.scratch_depth, world.torch.capturing) == (None, 0, None)
    assert world.hook.archive == {("decode", "8"): None}


def test_a_graph_that_the_hook_cannot_build_is_captured(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    restored = start(Mode.RESTORE, captured)
    restored.hook.unavailable = {"wait": "an allocation is missing"}
    graph = one_graph(restored)
    assert (graph.restored, graph.reason) == (False, "an allocation is missing")


def test_no_memory_pool_is_dropped_while_one_is_in_use(start: Any) -> None:
    world = start(Mode.CAPTURE)
    with world.torch.cuda.use_mem_pool(world.torch.cuda.MemPool()):
        one_graph(world)
    assert [event for event in world.torch.events if event.startswith("abort")] == []


def test_scratch_memory_is_given_back_when_the_program_says_it_is_ready(start: Any) -> None:
    world = start(Mode.CAPTURE)
    one_graph(world)
    memory = world.foundry_torch.memory
    assert memory.scratch_pools() == 1
    world.foundry_torch.commit()
    assert memory.scratch_pools() == 0
