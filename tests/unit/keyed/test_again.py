"""Several caches of one name in a process, one after another and at once: what became of restored execs is known."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.fake_hook import FakeHook
from unit.keyed.test_cache import Bench, captured, restored

from foundry.capi import Mode
from foundry.keyed import KeyedGraphs


def again(bench: Bench, *, close: bool = True, **options: Any) -> None:
    """Open another cache of that name, for the same engine."""
    names: dict[str, Any] = {"shape": ("rows",), "moving": ("amount",), **options}
    if close:
        bench.cache.close()
    bench.cache = KeyedGraphs("decode", stream=5, hook=bench.hook, driver=bench.driver, **names)


def updated() -> Bench:
    """A restore in which the archive's exec, made for 1, was updated for 4."""
    bench = restored(captured((2, 1)))
    assert [bench.run(2, amount) for amount in (1, 4, 4)] == ["replayed", "eager", "updated"]
    return bench


@pytest.mark.parametrize(("how", "second"), [("closed", "updated"), ("gone", "updated"), ("still there", "captured")])
def test_the_next_cache_knows_what_an_exec_was_updated_to(how: str, second: str) -> None:
    bench = updated()
    if how == "gone":
        del bench.cache
    again(bench, close=how == "closed")
    assert [bench.run(2, 1), bench.run(2, 1)] == ["eager", second]


def test_the_next_cache_takes_the_exec_for_what_it_is_now() -> None:
    bench = updated()
    again(bench)
    assert bench.run(2, 4) == "replayed"


def test_of_two_caches_the_first_has_the_graphs_until_it_is_closed() -> None:
    bench = restored(captured((2, 1)))
    first = bench.cache
    again(bench, close=False)
    second = bench.cache
    assert bench.run(2, 1) == "eager"
    bench.cache = first
    assert bench.run(2, 1) == "replayed"
    first.close()
    bench.cache = second
    assert bench.run(2, 1) == "captured"
    again(bench)
    assert bench.run(2, 1) == "replayed"


def test_an_exec_whose_values_have_other_names_is_for_nobody_knows_what() -> None:
    bench = updated()
    again(bench, moving=("other",))
    key = {"rows": 2, "other": 4}
    done = [bench.cache.run(key, bench.engine.pass_of({"rows": 2, "amount": 4})).value for _ in range(3)]
    assert done == ["eager", "updated", "replayed"]


def test_an_exec_of_other_inputs_is_not_used_again() -> None:
    bench = updated()
    again(bench, inputs={"layout": 2})
    assert [bench.run(2, 4), bench.run(2, 4)] == ["eager", "captured"]
    again(bench)
    assert [bench.run(2, 1), bench.run(2, 1)] == ["eager", "captured"]


def test_a_closed_cache_runs_without_the_archive() -> None:
    bench = restored(captured((2, 1)))
    bench.cache.close()
    assert [bench.run(2, 1), bench.run(2, 1)] == ["eager", "captured"]
    bench.cache.close()


def test_a_capture_keeps_a_graph_of_one_cache() -> None:
    bench = Bench(FakeHook(Mode.CAPTURE))
    assert bench.warm(2, 1)
    kept = dict(bench.hook.archive)
    again(bench, close=False)
    assert [bench.run(2, 1), bench.run(2, 1), bench.run(2, 3)] == ["eager", "captured", "updated"]
    again(bench)
    assert [bench.run(2, 1), bench.run(2, 1)] == ["eager", "captured"]
    assert bench.hook.archive == kept
