from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_driver import FakeDriver, FakeEngine
from helpers.fake_hook import FakeHook

from foundry import env
from foundry.capi import Mode
from foundry.keyed import KeyedGraphs, Report, Round, parity, report

KEYS = [(2, 1), (2, 1), (2, 1), (2, 3), (6, 3), (6, 3), (6, 2), (2, 2)]
"""Rows and amounts of rounds: across each seam, and back."""


class Bench:
    """An engine and a cache for it. What a pass adds besides `amount` is `hidden`, which no key names."""

    def __init__(self, hook: FakeHook | None = None, **options: Any) -> None:
        self.hook = hook or FakeHook()
        self.driver = FakeDriver(self.hook)
        self.engine = FakeEngine(self.driver)
        names: dict[str, Any] = {"shape": ("rows",), "moving": ("amount",), **options}
        self.cache = KeyedGraphs("decode", stream=5, hook=self.hook, driver=self.driver, **names)

    def rounds(self, keys: list[tuple[int, int]] = KEYS) -> list[Round]:
        return [
            Round({"rows": rows, "amount": amount}, self.engine.pass_of({"rows": rows, "amount": amount}))
            for rows, amount in keys
        ]

    def compare(self, rounds: list[Round] | None = None, **options: Any) -> Report:
        return parity.compare(
            self.cache,
            self.rounds() if rounds is None else rounds,
            state=self.engine.state,
            memory=self.engine,
            **options,
        )


def test_equal_twins_over_all_seams_with_a_control_that_is_caught() -> None:
    bench = Bench()
    found = bench.compare()
    assert found == Report(
        "decode", "equal", rounds=8, eager=2, captured=2, updated=3, replayed=1, bytes=64, seams=2, controls=1, caught=1
    )
    assert found.line() == (
        "parity of decode: equal: 8 rounds (1 replayed, 3 updated, 2 captured, 2 eager), 2 seams crossed, "
        "64 bytes compared, 1 of 1 controls caught"
    )
    assert bench.engine.numbers == [0] * 8, "the state is put back"
    assert len(bench.cache) == len(bench.driver.execs) == 2, "what was planted is gone"


def test_a_value_that_the_key_lacks_is_found() -> None:
    bench = Bench(moving=())
    rounds = [Round({"rows": one.key["rows"]}, one.record) for one in bench.rounds()]
    found = bench.compare(rounds, outputs={"first": next(iter(bench.engine.state.values()))})
    assert found.verdict == "different"
    assert found.reason == (
        "round 4 (replayed), output first at byte 0: 0404000000000000 through the graph, 0606000000000000 eagerly"
    )
    assert bench.engine.numbers == [0] * 8


def test_a_control_that_passes_is_no_proof() -> None:
    bench = Bench()
    bench.engine.blind = True
    found = bench.compare()
    assert (found.verdict, found.controls, found.caught) == ("refused", 1, 0)
    assert (
        found.reason
        == "the control passes: without amount in the key all is equal, too; does a round change amount alone?"
    )


def test_each_moving_value_gets_a_control_and_each_must_be_caught() -> None:
    bench = Bench(moving=("amount", "colour"))
    colours = "rrrrrggg"
    rounds = [
        Round({**one.key, "colour": colour}, one.record) for one, colour in zip(bench.rounds(), colours, strict=True)
    ]
    found = bench.compare(rounds)
    assert (found.verdict, found.controls, found.caught) == ("refused", 2, 1)
    assert (
        found.reason
        == "the control passes: without colour in the key all is equal, too; does a round change colour alone?"
    )
    assert bench.compare(rounds, controls=["amount"]).verdict == "equal"


def test_a_key_that_moves_nothing_has_its_shape_for_a_control() -> None:
    bench = Bench(shape=("rows", "amount"), moving=())
    keys = [(2, 1)] * 3 + [(2, 3)] * 3 + [(6, 3)] * 3
    found = bench.compare(bench.rounds(keys))
    assert (found.verdict, found.updated, found.controls, found.caught) == ("equal", 0, 2, 2)


def test_dedicated_execs_need_no_updated_round() -> None:
    found = Bench(dedicated=4).compare()
    assert (found.verdict, found.updated, found.caught) == ("equal", 0, 1)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (KEYS[:3], "no round crosses a seam of rows, amount"),
        ([], "no round crosses a seam of rows, amount"),
        ([(2, 1), (2, 1), (2, 3)], "no round crosses a seam of rows"),
        ([(2, 1), (2, 1), (6, 3)], "no round was replayed or updated"),
        ([(2, 1), (2, 1), (2, 1), (6, 3)], "no round was updated"),
        ([(2, 1), (2, 3), (2, 4), (6, 3)], "no round was replayed"),
        ([(2, 1), (6, 3)], "no round was replayed or updated or captured"),
    ],
)
def test_rounds_that_leave_something_out_prove_nothing(keys: list[tuple[int, int]], reason: str) -> None:
    bench = Bench()
    found = bench.compare(bench.rounds(keys))
    assert (found.verdict, found.reason, found.controls) == ("refused", reason, 0)


def test_a_value_may_be_said_to_be_constant() -> None:
    bench = Bench()
    keys = [(2, 1), (2, 1), (2, 1), (2, 3)]
    found = bench.compare(bench.rounds(keys), constant=["rows"])
    assert (found.verdict, found.seams) == ("equal", 1)


def test_no_control_is_no_proof() -> None:
    found = Bench().compare(controls=[])
    assert (found.verdict, found.reason) == ("refused", "no control was planted")


def test_a_warm_cache_is_compared_and_an_empty_twin_of_it_too() -> None:
    bench = Bench()
    for one in bench.rounds():
        bench.cache.run(one.key, one.record)
    bench.driver.events.clear()
    bench.engine.numbers = [0] * 8
    found = bench.compare()
    assert (found.verdict, found.rounds, found.captured) == ("equal", 16, 2)
    assert bench.cache.counts.captured == 2
    assert len(bench.driver.execs) == 2


def test_a_graph_that_is_wrong_already_is_found() -> None:
    bench = Bench()
    for one in bench.rounds():
        bench.cache.run(one.key, one.record)
    for launches in bench.driver.execs.values():
        launches.pop()
    found = bench.compare(bench.rounds([(2, 2), *KEYS]))
    assert found.verdict == "different"
    assert found.reason == (
        "round 1 (replayed), state numbers at byte 0: 1818101010100000 through the graph, 1a1a101010100000 eagerly"
    )


def test_a_pass_that_differs_from_itself_is_said_to() -> None:
    bench = Bench()
    chance = itertools.count()

    def record(stream: int) -> None:
        bench.driver.put("roll", lambda: bench.engine.numbers.__setitem__(0, next(chance)))

    found = bench.compare([Round(one.key, record) for one in bench.rounds()])
    assert found.verdict == "different"
    assert found.reason.endswith(", and two eager passes differ, too")


def test_inputs_are_prepared_for_each_twin() -> None:
    bench = Bench()
    rounds = [
        Round(one.key, one.record, lambda number=number: bench.engine.numbers.__setitem__(1, number))  # type: ignore[misc]
        for number, one in enumerate(bench.rounds())
    ]
    assert bench.compare(rounds).verdict == "equal"


def test_a_capture_keeps_none_of_it() -> None:
    bench = Bench(FakeHook(Mode.CAPTURE))
    bench.compare()
    phases = [event for event in bench.hook.events if event.startswith("scratch")]
    assert (phases[0], phases[-1]) == ("scratch begin decode parity", "scratch end")


def test_wrong_arguments() -> None:
    bench = Bench()
    with pytest.raises(ValueError, match="the key has no colour, place"):
        bench.compare(controls=["place"], constant=["colour"])
    with pytest.raises(ValueError, match="names no memory"):
        parity.compare(bench.cache, bench.rounds(), state={}, memory=bench.engine)


def test_foundry_parity_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(env.PARITY, raising=False)
    assert not parity.wanted()
    told = tmp_path / "reports"
    monkeypatch.setenv(env.PARITY, str(told))
    assert parity.wanted()
    found = [Bench().compare(), Bench().compare(controls=[])]
    assert [report.parse(line) for line in told.read_text().splitlines()] == found


@pytest.mark.parametrize(
    "line",
    ["", "{}", "[]", "x", "1", json.dumps({**json.loads(Report("a", "equal").as_json()), "verdict": "good"}),
     json.dumps({**json.loads(Report("a", "equal").as_json()), "rounds": True}),
     json.dumps({**json.loads(Report("a", "equal").as_json()), "more": 1})],
)  # fmt: skip
def test_a_line_that_is_no_report_is_not_read(line: str) -> None:
    with pytest.raises(ValueError):
        report.parse(line)
