"""One pass of a capture loop: what is stored of a capture, and when a restore answers it."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
from typing import Any

import pytest

from foundry.capi import Mode, UnavailableError

ARCHIVED = ("toy/decode", "8")


def step(world: Any, inputs: Any, log: list[str]) -> Any:
    """A body as engines capture it: makes a tensor."""
    log.append("capture" if world.torch.capturing else "run")
    made = world.torch.empty(4)
    made.fill_(1)
    return made, inputs[0]


def one_graph(world: Any, *, warm_up: Any = None, inputs: Any = None, before: Any = None) -> Any:
    """Warm up and capture as an engine's loop would."""
    log: list[str] = []
    stream = world.torch.cuda.Stream()
    given = [tensor(world)] if inputs is None else inputs
    if world.own.holds("decode", "8"):
        world.own.skip_warm_up()
    else:
        with world.own.warm_up("8"):
            (warm_up or (lambda: step(world, given, log)))()
    claim = world.own.claim("decode", "8", given)
    graph = world.torch.cuda.CUDAGraph()
    with world.seam.expecting(claim), world.graph(graph, stream):
        outputs = claim.run(lambda: step(world, given, log))
    return graph, outputs, log, claim


def tensor(world: Any, *shape: int) -> Any:
    made = world.torch.empty(*(shape or (4,)))
    made.device.type = "cuda"
    return made


def test_a_capture_is_stored_under_its_name_and_warmed_up_apart(start: Any) -> None:
    world = start(Mode.CAPTURE)
    _, _, log, _ = one_graph(world)
    assert log == ["run", "capture"]
    assert list(world.hook.archive) == [ARCHIVED]
    events = world.hook.events
    assert events[-3:] == ["label toy/decode/8", "instantiate labelled", "label end"]
    assert "scratch begin toy/8 warm-up" in events


def test_a_restore_answers_body_outputs_and_replay(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    _, wanted, _, _ = one_graph(captured)
    world = start(Mode.RESTORE, captured)
    graph, outputs, log, _ = one_graph(world)
    assert log == []
    assert [item.data_ptr() for item in outputs] == [item.data_ptr() for item in wanted]
    graph.replay()
    assert world.hook.events[-1] == "launch 1000 on 0"
    assert (world.hook.totals["warm_ups_skipped"], world.hook.totals["captures_skipped"]) == (1, 1)
    assert "captures_run" not in world.hook.totals


def known(world: Any) -> Any:
    """Claim the graph by what the archive tells of it."""
    [claim] = world.own.claim_usable("decode", {"8": world.own.usable("decode", "8")})
    return claim


def test_a_capture_whose_inputs_are_known_is_answered_without_them(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    *_, stored = one_graph(captured)
    world = start(Mode.RESTORE, captured)
    usable = world.own.usable("decode", "8")
    assert usable[1]["inputs"] == stored.told
    [claim] = world.own.claim_usable("decode", {"8": usable})
    assert claim.found is not None
    claim.graph().replay()
    assert world.hook.events[-1] == "launch 1000 on 0"
    assert world.hook.totals["captures_skipped"] == 1
    assert world.own.usable("decode", "16") is None


def test_several_captures_whose_inputs_are_known_are_answered_each_with_its_own(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    text = captured.hook.archive[ARCHIVED]
    captured.hook.archive[("toy/decode", "16")] = text
    captured.hook.archive[("toy/decode", "4")] = text
    world = start(Mode.RESTORE, captured)
    claims = world.own.claim_usable("decode", {key: world.own.usable("decode", key) for key in ("4", "8", "16")})
    assert [(claim.key, claim.found[0]) for claim in claims] == [("4", 1002), ("8", 1000), ("16", 1001)]
    assert world.hook.events[-3:] == ["wait 1002", "wait 1000", "wait 1001"]


def test_one_of_several_that_cannot_be_built_is_not_answered_and_said(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    captured.hook.archive[("toy/decode", "16")] = captured.hook.archive[ARCHIVED]
    world = start(Mode.RESTORE, captured)

    def wait(graph: int) -> None:
        if graph == 1000:
            raise UnavailableError("a kernel is missing")

    monkeypatch.setattr(world.hook, "wait", wait)
    claims = world.own.claim_usable("decode", {key: world.own.usable("decode", key) for key in ("8", "16")})
    assert [claim.found and claim.found[0] for claim in claims] == [None, 1001]
    assert claims[0].answers.reasons == {"8": "a kernel is missing"}


def test_a_key_that_is_claimed_once_more_is_another_graph(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    world = start(Mode.RESTORE, captured)
    assert known(world).found[0] == 1000
    again = known(world)
    assert (again.key, again.found) == ("8 again", None)
    assert again.answers.reasons == {"8 again": "the archive has no graph `8 again`"}


def test_nothing_is_usable_unless_the_process_restores(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    assert ARCHIVED in captured.hook.archive
    assert captured.own.usable("decode", "8") is None


def test_inputs_that_are_made_after_all_are_compared(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    world = start(Mode.RESTORE, captured)
    claim = known(world)
    assert world.own.recheck(claim, [tensor(world)]).found is not None
    assert world.own.recheck(claim, [tensor(world)]).found is None
    assert "an input is not the capture's: items[0][0]" in claim.answers.reasons["8"]


def test_inputs_that_no_archive_holds_are_not_answered(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    world = start(Mode.RESTORE, captured)
    claim = known(world)
    assert world.own.recheck(claim, [object()]) is claim
    assert claim.found is None
    assert "which an archive cannot hold" in claim.refused


def test_garbage_is_collected_only_where_torchs_memory_is_not_the_captures(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    collect = gc.collect
    monkeypatch.setattr(gc, "collect", lambda: counted.append(collect()))
    world = start(Mode.CAPTURE)
    restored = start(Mode.RESTORE, world)
    del counted[:]
    for expected, collections in ((world.own.layout, 0), ("another", 1), (None, 2)):
        made = restored.passes.Pass(restored.hook, "toy", restored.own.device, {}, expected=expected)
        assert (made.layout, len(counted)) == (world.own.layout, collections)


def test_what_the_begin_of_a_capture_does_to_the_allocator_is_done(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    world = start(Mode.RESTORE, captured)
    before = world.torch.events.count("empty cache")
    one_graph(world)
    assert world.torch.events.count("empty cache") == before + 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"adapter": "other"}, "captured by adapter other, not toy"),
        ({"torch": "2.9.0"}, "captured with torch 2.9.0, this is 2.11.0"),
        ({"device": 1}, "captured on device 1, this is 0"),
        ({"pins": "0"}, "another setting of toy"),
        ({"layout": "0"}, "torch's live allocations before the first graph differ"),
        ({"inputs": {"items": [1]}}, "an input is not the capture's: items[0]"),
    ],
)
def test_a_graph_of_another_ground_is_captured_and_said(start: Any, change: dict[str, Any], reason: str) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    captured.hook.archive[ARCHIVED] = json.dumps({**json.loads(captured.hook.archive[ARCHIVED]), **change})
    world = start(Mode.RESTORE, captured)
    _, _, log, claim = one_graph(world)
    assert log[-1] == "capture"
    assert reason in world.hook.given_up["8"]
    assert "warm_ups_skipped" not in world.hook.totals
    assert claim.found is None


def test_other_settings_are_another_pin(start: Any) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    world = start(Mode.RESTORE, captured, pins={"model": "large"})
    _, _, log, _ = one_graph(world)
    assert log == ["run", "capture"]


def test_a_warm_up_that_takes_random_numbers_makes_the_graph_unusable(start: Any) -> None:
    world = start(Mode.CAPTURE)
    generator = world.torch.cuda.default_generators[0]
    one_graph(world, warm_up=lambda: generator.set_offset(4))
    assert json.loads(world.hook.archive[ARCHIVED])["refused"] == "random numbers inside a graph of toy"
    again = start(Mode.RESTORE, world)
    assert one_graph(again)[2] == ["run", "capture"]


def test_without_a_warm_up_nothing_is_known_of_random_numbers(start: Any) -> None:
    world = start(Mode.CAPTURE)
    claim = world.own.claim("decode", "8", [])
    with world.seam.expecting(claim), world.graph(world.torch.cuda.CUDAGraph(), world.torch.cuda.Stream()):
        claim.run(lambda: None)
    assert "random numbers" in json.loads(world.hook.archive[ARCHIVED])["refused"]


def test_outputs_that_cannot_be_described_are_refused_and_returned(start: Any) -> None:
    world = start(Mode.CAPTURE)
    with world.own.warm_up("8"):
        pass
    claim = world.own.claim("decode", "8", [])
    odd = object()
    with world.seam.expecting(claim), world.graph(world.torch.cuda.CUDAGraph(), world.torch.cuda.Stream()):
        assert claim.run(lambda: odd) is odd
    assert "object" in json.loads(world.hook.archive[ARCHIVED])["refused"]


def test_inputs_that_cannot_be_described_are_refused(start: Any) -> None:
    world = start(Mode.CAPTURE)
    one_graph(world, inputs=[object()])
    assert json.loads(world.hook.archive[ARCHIVED])["refused"] == "an input is a object, which an archive cannot hold"


def test_a_number_in_host_memory_is_compared_by_value(start: Any) -> None:
    world = start(Mode.CAPTURE)
    made = tensor(world)
    made.device.type = "cpu"
    made.tolist = lambda: [1, 2]
    assert world.passes.signature(made, 0) == ["host", [1, 2], "torch.float32"]
    made.numel = lambda: 65
    with pytest.raises(Exception, match="65 numbers lies in host memory"):
        world.passes.signature(made, 0)


def test_a_body_that_fails_leaves_no_label_open(start: Any) -> None:
    world = start(Mode.CAPTURE)
    with world.own.warm_up("8"):
        pass
    claim = world.own.claim("decode", "8", [])
    with (
        pytest.raises(ValueError, match="oh"),
        world.seam.expecting(claim),
        world.graph(world.torch.cuda.CUDAGraph(), world.torch.cuda.Stream()),
    ):
        raise ValueError("oh")
    assert world.hook.label is None
    assert world.hook.archive.get(ARCHIVED) is None


def test_a_strict_check_uses_nothing_that_has_no_witness(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = start(Mode.CAPTURE)
    one_graph(captured)
    monkeypatch.setenv("FOUNDRY_CHECK", "only")
    world = start(Mode.RESTORE, captured)
    _, _, log, claim = one_graph(world)
    assert claim.found is None
    assert log == ["capture"]
    assert "graphs of toy have no witness" in world.hook.given_up["8"]


def test_a_capture_that_nobody_expects_is_captured_as_always(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = start(Mode.CAPTURE)
    monkeypatch.setattr(world.seam.capi, "load", lambda: world.hook)
    for _ in range(2):
        with world.graph(world.torch.cuda.CUDAGraph(), world.torch.cuda.Stream()):
            pass
    assert world.hook.totals["graphs_without_a_key"] == 2
    assert world.hook.archive == {}


@pytest.mark.parametrize(
    ("module", "counter", "line"),
    [
        ("__main__", "graphs_of_scripts", "since the body of `with torch.cuda.graph(...)` may do more"),
        ("torch.cuda.graphs", "graphs_of_make_graphed_callables", "`torch.cuda.make_graphed_callables` are captured"),
        (
            "torch.cuda.graphs_of_a_user",
            "graphs_of_scripts",
            "since the body of `with torch.cuda.graph(...)` may do more",
        ),
        ("torch._inductor.cudagraph_trees", "graphs_of_torch_compile", '`torch.compile(mode="reduce-overhead")` are'),
        ("vllm.compilation.cuda_graph", None, None),
        ("transformers.generation.model_runner", None, None),
    ],
)
@pytest.mark.parametrize("how", ["with", "stack"])
def test_who_began_it_is_counted_and_told_once_with_what_comes_back_instead(
    start: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    module: str,
    counter: str | None,
    line: str | None,
    how: str,
) -> None:
    world = start(Mode.CAPTURE)
    monkeypatch.setattr(world.seam.capi, "load", lambda: world.hook)
    for name in world.seam.INFORMED:
        monkeypatch.delitem(sys.modules, name, raising=False)
    program = {
        "with": "for _ in range(2):\n    with graph(made(), stream()): pass",
        "stack": "for _ in range(2):\n    with ExitStack() as stack: stack.enter_context(graph(made(), stream()))",
    }[how]
    around = {"graph": world.graph, "made": world.torch.cuda.CUDAGraph, "stream": world.torch.cuda.Stream}
    exec(program, {"__name__": module, "ExitStack": contextlib.ExitStack, **around})
    found = {name: count for name, count in world.hook.totals.items() if name.startswith("graphs_of_")}
    assert found == ({counter: 2} if counter else {})
    assert world.hook.totals["graphs_without_a_key"] == 2
    assert len(caplog.messages) == (line is not None)
    if line is not None:
        assert caplog.messages[0].startswith("foundry: torch: ")
        assert line in caplog.messages[0]
        assert "foundry.torch.GraphSet(name).capture_or_restore(key, function, inputs)" in caplog.messages[0]


def test_who_uses_graph_sets_is_not_told(
    start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = start(Mode.CAPTURE)
    monkeypatch.setattr(world.seam.capi, "load", lambda: world.hook)
    assert "foundry.torch" in sys.modules
    with world.graph(world.torch.cuda.CUDAGraph(), world.torch.cuda.Stream()):
        pass
    assert world.hook.totals["graphs_of_scripts"] == 1
    assert caplog.messages == []


def test_a_second_graph_of_a_name_gets_another(start: Any) -> None:
    world = start(Mode.CAPTURE)
    keys = [world.own.claim(name, "8", []).key for name in ("decode", "decode", "prefill", "decode")]
    assert keys == ["8", "8 again", "8", "8 again again"]


def test_only_the_first_capture_of_a_block_is_the_claims(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = start(Mode.CAPTURE)
    monkeypatch.setattr(world.seam.capi, "load", lambda: world.hook)
    claim = world.own.claim("decode", "8", [])
    with world.seam.expecting(claim):
        for _ in range(2):
            with world.graph(world.torch.cuda.CUDAGraph(), world.torch.cuda.Stream()):
                pass
    assert [event for event in world.hook.events if event.startswith("label")] == ["label toy/decode/8", "label end"]
    assert world.hook.totals["graphs_without_a_key"] == 1


def test_patching_twice_is_patching_once(start: Any) -> None:
    world = start(Mode.CAPTURE)
    enter = world.graph.__enter__
    world.seam.patch(world.module)
    assert world.graph.__enter__ is enter


class TestRandomNumbers:
    """Graphs that may take random numbers follow torch's generator."""

    def sampled(self, world: Any, count: int = 1) -> Any:
        out = tensor(world, 1)

        def body() -> Any:
            for _ in range(count):
                out.uniform_()

        own, stream = world.own, world.torch.cuda.Stream()
        if own.holds("decode", "8"):
            own.skip_warm_up()
        else:
            with own.warm_up("8"):
                body()
        claim = own.claim("decode", "8", [])
        graph = world.torch.cuda.CUDAGraph()
        with world.seam.expecting(claim), world.graph(graph, stream):
            claim.run(body)
        return graph

    def recorded(self, world: Any) -> Any:
        return json.loads(world.hook.archive[ARCHIVED])

    def test_a_replay_moves_the_generator_on_as_torch_would(self, start: Any) -> None:
        captured = start(Mode.CAPTURE, random_numbers=True)
        self.sampled(captured, 2)
        assert self.recorded(captured)["random"]["consumed"] == 8
        world = start(Mode.RESTORE, captured, random_numbers=True)
        generator = world.torch.cuda.default_generators[0]
        graph = self.sampled(world, 2)
        before = generator.get_offset()
        graph.replay()
        graph.replay()
        assert generator.get_offset() == before + 16

    def test_one_that_takes_none_says_nothing_of_them(self, start: Any) -> None:
        captured = start(Mode.CAPTURE, random_numbers=True)
        self.sampled(captured, 0)
        assert "random" not in self.recorded(captured)

    def test_state_that_lies_elsewhere_is_refused(self, start: Any) -> None:
        captured = start(Mode.CAPTURE, random_numbers=True)
        self.sampled(captured)
        text = self.recorded(captured)
        text["random"]["seed"] += 512
        captured.hook.archive[ARCHIVED] = json.dumps(text)
        world = start(Mode.RESTORE, captured, random_numbers=True)
        self.sampled(world)
        assert world.hook.given_up["8"] == "torch keeps the state of random numbers elsewhere than at capture"

    def test_a_torch_that_keeps_it_out_of_reach_is_refused_by_name(self, start: Any) -> None:
        captured = start(Mode.CAPTURE, random_numbers=True, style="2.13")
        self.sampled(captured)
        assert self.recorded(captured)["refused"].startswith("random numbers inside the graph: ")


@pytest.mark.parametrize(("update", "stored"), [("0", False), ("1", True)])
def test_a_restore_stores_what_it_captures_only_in_an_update(
    start: Any, monkeypatch: pytest.MonkeyPatch, update: str, stored: bool
) -> None:
    monkeypatch.setenv("FOUNDRY_UPDATE", update)
    world = start(Mode.RESTORE, start(Mode.CAPTURE))
    one_graph(world)
    assert ("label toy/decode/8" in world.hook.events) == stored
