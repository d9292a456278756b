"""The C engine on foundry's cache of graphs: updated, dedicated, short of memory, compared with eager passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.tinyllm import KEYS, PROMPTS, SWITCH, Engine, Foundry, generation

TURNS = ("--buffers", "2")
GRAPHS = {SWITCH: "1"}
ROUNDS = 5 * KEYS
EQUAL = "equal: 360 rounds (216 replayed, 72 updated, 36 captured, 36 eager), 4 seams crossed, "


@pytest.mark.parametrize("temperature", [0, 0.9], ids=["greedy", "sampled"])
def test_inputs_that_move_update_the_graphs(engine: Engine, temperature: float) -> None:
    options = generation(PROMPTS, 600, temperature)
    result = engine.run(*options, *TURNS, **GRAPHS)
    assert result.tokens() == engine.reference(*options).tokens()
    found = result.statistics
    assert (found["eager"], found["captured"], found["refused"], found["held"]) == (KEYS, KEYS, 0, KEYS)
    assert found["updated"] + found["replayed"] == found["passes"]
    assert found["updated"] > found["replayed"] > 0


def test_dedicated_graphs_are_not_updated(engine: Engine) -> None:
    options = generation(PROMPTS, 300, 0)
    result = engine.run(*options, *TURNS, "--dedicated", "2", **GRAPHS)
    assert result.tokens() == engine.reference(*options).tokens()
    found = result.statistics
    assert (found["updated"], found["eager"], found["dropped"]) == (0, KEYS, 0)
    assert found["captured"] == found["held"] > KEYS
    assert found["captured"] - KEYS + found["replayed"] == found["passes"]


def test_below_the_floor_all_passes_are_eager(engine: Engine) -> None:
    options = generation(PROMPTS, 40, 0)
    memory = {"FOUNDRY_SIM_MEMORY": str(64 << 20)}
    result = engine.run(*options, "--floor", "100", **GRAPHS, **memory)
    assert result.tokens() == engine.reference(*options).tokens()
    found = result.statistics
    assert (found["captured"], found["replayed"], found["held"]) == (0, 0, 0)
    assert found["eager"] == found["passes"] + KEYS
    assert "tinyllm: less than 104857600 bytes of device memory are free" in result.errors


def test_a_capture_keeps_graphs_that_it_updates_and_a_restore_updates_them_in_place(
    engine: Engine, tmp_path: Path
) -> None:
    foundry = Foundry(tmp_path / "work", engine)
    options = generation(PROMPTS, 300, 0)
    expected = engine.reference(*options).tokens()
    captured = foundry.capture(*options, *TURNS)
    assert captured.tokens() == expected
    assert captured.statistics["updated"] > 0
    (process,) = json.loads(foundry.commands.run("inspect", "--json", foundry.archive).stdout)["processes"]
    assert (process["graphs"], process["restorable"]) == (KEYS, KEYS)
    restored = foundry.restore(*options, *TURNS, FOUNDRY_SIM_SEED="11")
    assert restored.tokens() == expected
    found = restored.statistics
    assert (found["restored"], found["captured"], found["refused"]) == (KEYS, 0, 0)
    assert found["updated"] > found["eager"] > 0
    assert found["hook_graphs_instantiated"] == 0


def test_parity(engine: Engine) -> None:
    done = engine.start("--parity", **GRAPHS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"parity of tinyllm: {EQUAL}")
    assert done.stdout.endswith(" 1 of 1 controls caught\n")


def test_parity_of_dedicated_graphs(engine: Engine) -> None:
    done = engine.start("--parity", "--dedicated", "2", **GRAPHS)
    assert done.returncode == 0
    assert done.stdout.startswith("parity of tinyllm: equal: 180 rounds ")
    assert " 0 updated" in done.stdout


def test_foundry_parity_of_a_plain_and_of_a_restored_engine(engine: Engine, tmp_path: Path) -> None:
    foundry = Foundry(tmp_path / "work", engine)
    words = engine.words("--parity")
    result = foundry.commands.run("parity", "--sim", "--json", "--", *words, environment=GRAPHS)
    document = json.loads(result.stderr)
    assert (result.returncode, document["exit_code"], document["simulated"]) == (0, 0, True)
    (report,) = document["reports"]
    assert (report["name"], report["verdict"], report["rounds"], report["caught"]) == (
        "tinyllm",
        "equal",
        2 * ROUNDS,
        1,
    )
    foundry.capture(*generation(PROMPTS[:1], 4, 0), *TURNS)
    nested = foundry.commands.words(*foundry.restoring(*words))
    result = foundry.commands.run("parity", "--sim", "--", *nested, environment=GRAPHS)
    assert result.returncode == 0, result.stderr
    assert f"{KEYS} graphs restored" in result.stderr
    # Each shape runs eagerly once in a process before it is first recorded, restored or not.
    rounds = "360 rounds (180 replayed, 72 updated, 36 captured, 72 eager)"
    assert f"foundry: parity of tinyllm: equal: {rounds}, 4 seams crossed, " in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--buffers", "5"), "--buffers is `5`, not a whole number from 1 to 4"),
        (("--dedicated", "-1"), "--dedicated is `-1`, not a whole number from 0 to 64"),
        (("--floor", "1.5"), "--floor is `1.5`, not a whole number from 0 to 1e+09"),
        (("--parity",), "--parity needs TINYLLM_GRAPHS=1"),
    ],
)
def test_wrong_options(engine: Engine, words: tuple[str, ...], message: str) -> None:
    done = engine.start(*words)
    assert (done.returncode, done.stderr) == (2, f"tinyllm: {message}\n")
