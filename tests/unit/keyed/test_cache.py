from __future__ import annotations

import json
from typing import Any

import pytest
from helpers.fake_driver import FakeDriver, FakeEngine
from helpers.fake_hook import FakeHook

from foundry import graphs
from foundry.capi import Mode
from foundry.keyed import Counts, Done, KeyedGraphs
from foundry.keyed.driver import CallError


class Bench:
    """A cache, and the engine that it is for."""

    def __init__(self, hook: FakeHook | None = None, **options: Any) -> None:
        self.hook = hook or FakeHook()
        self.driver = FakeDriver(self.hook)
        self.engine = FakeEngine(self.driver)
        names: dict[str, Any] = {"shape": ("rows",), "moving": ("amount",), **options}
        self.cache = KeyedGraphs("decode", stream=5, hook=self.hook, driver=self.driver, **names)

    def run(self, rows: int, amount: int) -> str:
        key = {"rows": rows, "amount": amount}
        before = list(self.engine.numbers)
        done = self.cache.run(key, self.engine.pass_of(key))
        twice = 2 if rows > 4 else 1
        wanted = [number + (amount * twice if row < rows else 0) for row, number in enumerate(before)]
        assert self.engine.numbers == wanted, (done, key)
        assert not self.driver.graphs, "a recorded graph was not destroyed"
        return done.value

    def warm(self, rows: int, amount: int) -> bool:
        key = {"rows": rows, "amount": amount}
        return self.cache.warm(key, self.engine.pass_of(key))


def test_a_shape_runs_eagerly_once_then_through_its_graph() -> None:
    bench = Bench()
    assert [bench.run(2, amount) for amount in (1, 1, 1, 7, 7, 1)] == [
        "eager", "captured", "replayed", "updated", "replayed", "updated",
    ]  # fmt: skip
    assert bench.cache.counts == Counts(eager=1, captured=1, updated=2, replayed=2)
    assert len(bench.driver.execs) == 1
    assert [event for event in bench.driver.events if event.startswith("launch")] == ["launch on 5"] * 5


def test_new_launches_are_another_exec() -> None:
    bench = Bench()
    assert [bench.run(rows, 1) for rows in (2, 2, 6, 6, 2, 6)] == [
        "eager", "captured", "eager", "captured", "replayed", "replayed",
    ]  # fmt: skip
    assert len(bench.cache) == len(bench.driver.execs) == 2


def test_a_refused_update_makes_the_exec_anew_and_clears_the_error() -> None:
    bench = Bench()
    bench.run(2, 1)
    bench.run(2, 1)
    bench.driver.refuses = True
    bench.driver.events.clear()
    assert bench.run(2, 3) == "captured"
    assert bench.driver.events == ["refuse", "clear error", "instantiate", "drop", "launch on 5"]
    assert (bench.cache.counts.refused, len(bench.driver.execs)) == (1, 1)
    assert bench.run(2, 3) == "replayed"


def test_a_key_that_does_not_tell_all_of_its_launches_is_made_anew_not_run_wrongly() -> None:
    bench = Bench(shape=(), moving=("rows", "amount"))
    assert [bench.run(rows, 1) for rows in (2, 2, 6, 2)] == ["eager", "captured", "captured", "captured"]
    assert bench.cache.counts.refused == 2


def test_the_least_recently_used_graph_makes_room() -> None:
    bench = Bench(most=2)
    for rows in (1, 1, 2, 2, 1, 3):
        bench.run(rows, 1)
    assert len(bench.cache) == 2
    assert bench.run(3, 1) == "captured"
    assert (len(bench.cache), len(bench.driver.execs), bench.cache.counts.dropped) == (2, 2, 1)
    assert bench.run(1, 1) == "replayed"
    assert [bench.run(2, 1), bench.run(2, 1)] == ["eager", "captured"], "a new slot runs eagerly once"


def test_a_dedicated_exec_is_never_updated() -> None:
    bench = Bench(dedicated=2)
    assert [bench.run(2, amount) for amount in (1, 1, 2, 1, 2)] == [
        "eager", "captured", "captured", "replayed", "replayed",
    ]  # fmt: skip
    assert bench.run(2, 3) == "captured"
    assert (len(bench.driver.execs), bench.cache.counts.dropped) == (2, 1)
    assert [bench.run(2, amount) for amount in (2, 3, 1)] == ["replayed", "replayed", "captured"]
    assert "update" not in bench.driver.events
    assert bench.cache.counts.updated == 0


def test_a_single_dedicated_exec_is_made_anew_for_each_value() -> None:
    bench = Bench(dedicated=1)
    assert [bench.run(2, amount) for amount in (1, 1, 2, 3)] == ["eager", "captured", "captured", "captured"]
    assert (len(bench.driver.execs), bench.cache.counts.dropped) == (1, 2)


def test_dedicated_execs_of_all_shapes_share_the_room() -> None:
    bench = Bench(dedicated=2, most=3)
    for rows in (1, 2):
        for amount in (1, 1, 2):
            bench.run(rows, amount)
    assert (len(bench.cache), len(bench.driver.execs), bench.cache.counts.dropped) == (3, 3, 1)


def test_below_the_floor_the_cache_empties_itself_and_passes_run_eagerly() -> None:
    bench = Bench(floor=100)
    for rows in (1, 1, 2, 2):
        bench.run(rows, 1)
    bench.driver.free = 99
    assert [bench.run(3, 1), bench.run(3, 1)] == ["eager", "eager"]
    assert (len(bench.cache), len(bench.driver.execs), bench.cache.counts.emptied) == (0, 0, 1)
    assert bench.run(1, 1) == "eager"
    bench.driver.free = 100
    assert [bench.run(1, 1), bench.run(1, 1)] == ["captured", "replayed"]


def test_replays_alone_notice_the_floor_too() -> None:
    bench = Bench(floor=100)
    bench.run(1, 1)
    bench.run(1, 1)
    bench.driver.free = 99
    done = [bench.run(1, 1) for _ in range(70)]
    assert done[0] == "replayed"
    assert done[-1] == "eager"
    assert (bench.cache.counts.emptied, len(bench.driver.execs)) == (1, 0)


def test_no_floor_asks_for_no_memory() -> None:
    bench = Bench()
    bench.driver.free = 0
    assert [bench.run(1, 1) for _ in range(70)][-1] == "replayed"


def test_instantiation_that_runs_out_of_memory_empties_the_cache_and_tries_again() -> None:
    bench = Bench()
    bench.run(1, 1)
    bench.run(1, 1)
    bench.driver.room = 1
    assert [bench.run(2, 1), bench.run(2, 1)] == ["eager", "captured"]
    assert (bench.cache.counts.emptied, len(bench.driver.execs)) == (1, 1)
    bench.driver.room = 0
    assert [bench.run(3, 1) for _ in range(3)] == ["eager", "eager", "eager"]


def test_another_failure_of_the_driver_is_the_callers() -> None:
    bench = Bench()
    bench.run(1, 1)

    def fail(graph: int) -> int:
        raise CallError("cuGraphInstantiateWithFlags", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")

    bench.driver.instantiate = fail  # type: ignore[method-assign]
    with pytest.raises(CallError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        bench.run(1, 1)
    assert not bench.driver.graphs


def test_a_pass_that_cannot_be_recorded_runs_eagerly_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    plain = bench.engine.pass_of

    def pass_of(key: Any) -> Any:
        def record(stream: int) -> None:
            if bench.driver.recording is not None:
                raise RuntimeError("operation not permitted while capturing")
            plain(key)(stream)

        return record

    bench.engine.pass_of = pass_of  # type: ignore[method-assign]
    assert [bench.run(1, 1) for _ in range(3)] == ["eager"] * 3
    assert bench.cache.unfit == {(1,): "operation not permitted while capturing"}
    assert bench.driver.events.count("clear error") == 1
    assert caplog.messages == ["passes of decode rows=1 run eagerly: operation not permitted while capturing"]


def test_an_error_of_an_eager_pass_is_the_callers_and_changes_nothing() -> None:
    bench = Bench()

    def record(stream: int) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        bench.cache.run({"rows": 1, "amount": 1}, record)
    assert bench.cache.counts == Counts()
    assert bench.run(1, 1) == "eager"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({"rows": 1}, "the key has rows; it must have rows, amount"),
        ({"rows": 1, "amounts": 1}, "the key lacks 'amount'"),
        ({"rows": 1, "amount": 1, "more": 1}, "the key has rows, amount, more; it must have rows, amount"),
        ({"rows": (1, 2), "amount": 1}, "rows is (1, 2); the values of a key are numbers, text or truth values"),
    ],
)
def test_a_key_must_have_a_value_for_each_name(key: dict[str, Any], message: str) -> None:
    bench = Bench()
    with pytest.raises(ValueError) as error:
        bench.cache.run(key, lambda stream: None)
        bench.cache.run(key, lambda stream: None)
    assert str(error.value) == message


@pytest.mark.parametrize("options", [{"most": 0}, {"dedicated": -1}, {"floor": -1}, {"moving": ("rows",)}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least|twice"):
        Bench(**options)


def captured(*keys: tuple[int, int], **options: Any) -> FakeHook:
    """A capture that warmed these."""
    bench = Bench(FakeHook(Mode.CAPTURE), **options)
    for rows, amount in keys:
        assert bench.warm(rows, amount)
    return bench.hook


def test_a_capture_warms_in_a_scratch_phase_and_labels_each_graph_once() -> None:
    hook = captured((2, 1), (1, 1), (2, 9))
    assert [event for event in hook.events if "label" in event or "scratch" in event] == [
        "scratch begin decode/rows=2 warm-up", "scratch end", "label decode/rows=2",
        "instantiate labelled", "label end",
        "scratch begin decode/rows=1 warm-up", "scratch end", "label decode/rows=1",
        "instantiate labelled", "label end",
    ]  # fmt: skip
    assert json.loads(hook.archive["decode", "rows=2"] or "") == {
        "adapter": "keyed", "inputs": {}, "moving": {"amount": 1}, "warm_ups": 1,
    }  # fmt: skip
    assert (hook.totals[graphs.WARM_UPS_RUN], hook.totals[graphs.CAPTURES_RUN]) == (2, 2)


def test_a_capture_updates_no_exec_whose_graph_it_stores() -> None:
    bench = Bench(FakeHook(Mode.CAPTURE))
    bench.warm(2, 1)
    assert [bench.run(2, amount) for amount in (1, 2, 3, 3)] == ["replayed", "captured", "updated", "replayed"]
    assert json.loads(bench.hook.archive["decode", "rows=2"] or "")["moving"] == {"amount": 1}
    assert bench.hook.events[-3:] == ["scratch begin decode/rows=2 again", "instantiate", "scratch end"]


def restored(hook: FakeHook, **options: Any) -> Bench:
    """A restore of what a capture made, whose graphs add 1 to the first two rows."""
    bench = Bench(FakeHook(Mode.RESTORE, hook.archive), **options)
    for number in range(len(hook.archive)):
        key = {"rows": 2, "amount": 1}
        bench.driver.graphs[0] = []
        bench.driver.recording = bench.driver.graphs[0]
        bench.engine.pass_of(key)(0)
        bench.driver.recording = None
        bench.driver.execs[bench.hook.exec(1000 + number)] = bench.driver.graphs.pop(0)
    return bench


def test_a_restored_cache_starts_warm() -> None:
    bench = restored(captured((2, 1)))
    assert bench.warm(2, 1)
    assert [bench.run(2, 1), bench.run(2, 1)] == ["replayed", "replayed"]
    assert bench.cache.counts == Counts(replayed=2, restored=1)
    assert (bench.hook.totals[graphs.WARM_UPS_SKIPPED], bench.hook.totals[graphs.CAPTURES_SKIPPED]) == (1, 1)


def test_a_pass_takes_a_graph_from_the_archive_unasked() -> None:
    bench = restored(captured((2, 1)))
    assert bench.run(2, 1) == "replayed"


def test_a_restored_exec_is_updated_in_place_after_an_eager_pass() -> None:
    bench = restored(captured((2, 1)), most=1)
    alive = set(bench.driver.execs)
    assert [bench.run(2, amount) for amount in (1, 4, 4, 4)] == ["replayed", "eager", "updated", "replayed"]
    assert set(bench.driver.execs) == alive
    # Another graph takes its place. The archive's exec lives on, and is not taken for what it was at first.
    assert [bench.run(1, 1), bench.run(1, 1)] == ["eager", "captured"]
    assert alive < set(bench.driver.execs)
    assert bench.run(2, 4) == "replayed"
    assert bench.run(2, 1) == "eager"
    assert bench.run(2, 1) == "updated"


def test_a_restored_exec_that_refuses_its_update_is_left_to_the_hook() -> None:
    bench = restored(captured((2, 1)))
    bench.run(2, 2)
    bench.driver.refuses = True
    assert bench.run(2, 2) == "captured"
    assert "drop" not in bench.driver.events
    bench.cache.empty()
    assert [bench.run(2, 1), bench.run(2, 1)] == ["eager", "captured"], "nobody knows what the refused exec is"


def test_dedicated_execs_that_are_kept_are_at_most_as_many_as_can_be_held() -> None:
    hook = captured((2, 1), (2, 2), (2, 3), dedicated=2, most=2)
    assert [key for _, key in hook.archive] == ["rows=2 amount=1", "rows=2 amount=2"]
    assert hook.events[-3:] == ["scratch begin decode/rows=2 amount=3 again", "instantiate", "scratch end"]


def test_an_archive_is_not_asked_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(FakeHook(Mode.RESTORE), dedicated=2)
    for amount in range(400):
        bench.run(2, amount)
    assert len(bench.cache.reasons) == 256
    assert not caplog.messages


def test_a_refused_exec_that_has_no_successor_is_not_launched() -> None:
    bench = Bench()
    bench.run(2, 1)
    bench.run(2, 1)
    bench.driver.refuses = True
    instantiate = bench.driver.instantiate

    def fail(graph: int) -> int:
        raise CallError("cuGraphInstantiateWithFlags", 999, "CUDA_ERROR_UNKNOWN")

    bench.driver.instantiate = fail  # type: ignore[method-assign]
    with pytest.raises(CallError):
        bench.run(2, 3)
    bench.driver.instantiate = instantiate  # type: ignore[method-assign]
    assert bench.run(2, 1) == "captured"


def test_dedicated_execs_are_restored_by_their_whole_key() -> None:
    bench = restored(captured((2, 1), (2, 5), dedicated=4), dedicated=4)
    assert bench.run(2, 1) == "replayed"
    assert bench.cache.counts.restored == 1
    assert set(bench.hook.archive) == {("decode", "rows=2 amount=1"), ("decode", "rows=2 amount=5")}


def test_graphs_for_other_inputs_are_given_up_with_the_reason() -> None:
    bench = restored(captured((2, 1), inputs={"size": 3}), inputs={"size": 4})
    assert [bench.run(2, 1), bench.run(2, 1)] == ["eager", "captured"]
    assert bench.cache.reasons == {"rows=2": "size: recorded 3, found 4"}
    assert bench.hook.given_up == {"rows=2": "size: recorded 3, found 4"}


def captured_at(base: int, rows: int, amount: int, **options: Any) -> FakeHook:
    hook = FakeHook(Mode.CAPTURE)
    hook.base = base
    bench = Bench(hook, **options)
    bench.engine.blind = True
    assert bench.warm(rows, amount)
    return hook


BASE = 1 << 46


def test_an_address_that_moves_with_the_range_is_told_relative_to_it() -> None:
    hook = captured_at(BASE, 2, BASE + 512)
    assert json.loads(hook.archive["decode", "rows=2"] or "")["moving"] == {"amount": {"device": 15, "offset": 512}}
    assert captured_at(BASE + 4096, 2, BASE + 4608).archive == hook.archive
    bench = restored(hook)
    bench.engine.blind = True
    bench.hook.base = BASE + 4096
    key = {"rows": 2, "amount": BASE + 512}
    assert bench.cache.run(key, bench.engine.pass_of(key)) is Done.EAGER
    key = {"rows": 2, "amount": BASE + 4608}
    other = restored(hook)
    other.hook.base = BASE + 4096
    assert other.cache.run(key, other.engine.pass_of(key)) is Done.REPLAYED


def test_dedicated_execs_are_named_by_addresses_relative_to_the_range() -> None:
    hook = captured_at(BASE, 2, BASE + 512, dedicated=2)
    assert list(hook.archive) == [("decode", "rows=2 amount=15+512")]


def test_a_witness_says_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foundry.witness.DriverMemory", object)
    monkeypatch.setenv("FOUNDRY_WITNESS", "1")
    hook = captured((2, 1))
    assert json.loads(hook.archive["decode", "rows=2"] or "")["witness"] == {
        "format": 1, "missing": "the program names no memory for a witness",
    }  # fmt: skip
    monkeypatch.setenv("FOUNDRY_CHECK", "1")
    bench = restored(hook)
    assert bench.run(2, 1) == "replayed"
    assert bench.hook.totals["witness_missing"] == 1


def test_under_a_check_that_keeps_only_equal_graphs_none_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoMemory:
        pass

    monkeypatch.setattr("foundry.witness.DriverMemory", NoMemory)
    monkeypatch.setenv("FOUNDRY_CHECK", "only")
    bench = restored(captured((2, 1)))
    assert bench.run(2, 1) == "eager"
    assert "witness-missing" in bench.cache.reasons["rows=2"]


def test_a_pass_tells_how_it_was_run() -> None:
    bench = Bench()
    key = {"rows": 1, "amount": 1}
    assert bench.cache.run(key, bench.engine.pass_of(key)) is Done.EAGER
