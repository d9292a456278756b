"""The C engine under capture and restore: the tokens of eager runs, and nothing captured by a restored one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from engines.tinyllm.make_weights import write_model
from helpers.native_build import hooked_environment
from helpers.tinyllm import KEYS, PROMPTS, SWITCH, Engine, Foundry, generation, make, result_of

KINDS = pytest.mark.parametrize("temperature", [0, 0.9], ids=["greedy", "sampled"])
COUNTS = pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS], ids=["one", "four"])
MOVED = {"FOUNDRY_SIM_FAIL": "cuMemAddressReserve:1"}
"""The range that the archive was made in is taken."""


def test_a_capture_keeps_a_graph_for_each_shape(captured: Foundry) -> None:
    done = captured.commands.run("inspect", "--json", captured.archive)
    (process,) = json.loads(done.stdout)["processes"]
    assert (process["graphs"], process["restorable"]) == (KEYS, KEYS)


@COUNTS
@KINDS
def test_a_restored_run_gives_the_tokens_of_an_eager_one_and_captures_nothing(
    captured: Foundry, engine: Engine, prompts: tuple[str, ...], temperature: float
) -> None:
    # From a few tokens to over 600: across 256 and 512 positions, where the attention kernels change.
    options = generation(prompts, 600, temperature)
    result = captured.restore(*options, FOUNDRY_SIM_SEED="11")
    assert result.tokens() == engine.reference(*options).tokens()
    assert result.statistics["mode"] == "restore", result.errors
    counts = {"restored": KEYS, "captured": 0, "eager": 0, "replayed": result.statistics["passes"]}
    hook = {f"hook_{name}": 0 for name in ("stream_captures", "graphs_instantiated", "kernel_launches")}
    assert {name: result.statistics[name] for name in counts | hook} == counts | hook
    assert re.search(rf"{KEYS} graphs restored, {KEYS} warm-ups and {KEYS} captures skipped", result.errors)


@COUNTS
@KINDS
def test_a_captured_run_gives_the_tokens_of_an_eager_one(
    engine: Engine, tmp_path: Path, prompts: tuple[str, ...], temperature: float
) -> None:
    options = generation(prompts, 600, temperature)
    result = Foundry(tmp_path / "work", engine).capture(*options)
    assert result.tokens() == engine.reference(*options).tokens()
    counts = {"mode": "capture", "captured": KEYS, "hook_stream_captures": KEYS, "restored": 0}
    assert {name: result.statistics[name] for name in counts} == counts


def test_a_proven_archive_serves_at_other_addresses(engine: Engine, tmp_path: Path) -> None:
    foundry = Foundry(tmp_path / "work", engine)
    foundry.capture(*generation(PROMPTS[:1], 4, 0), flags=("--prove",))
    options = generation(PROMPTS, 300, 0.9)
    result = foundry.restore(*options, **MOVED)
    assert result.tokens() == engine.reference(*options).tokens()
    assert (result.statistics["restored"], result.statistics["captured"]) == (KEYS, 0)


def test_an_archive_that_is_not_proven_is_not_used_at_other_addresses(captured: Foundry, engine: Engine) -> None:
    options = generation(PROMPTS[:1], 40, 0)
    result = captured.restore(*options, **MOVED)
    assert result.tokens() == engine.reference(*options).tokens()
    assert (result.statistics["restored"], result.statistics["captured"]) == (0, KEYS)


def test_graphs_of_another_model_are_given_up(captured: Foundry, engine: Engine, tmp_path: Path) -> None:
    write_model(tmp_path, layers=1)
    options = generation(PROMPTS, 40, 0)
    expected = engine.run("--device", "cpu", *options, model=tmp_path)
    result = captured.restore(*options, model=tmp_path)
    assert result.tokens() == expected.tokens() != engine.reference(*options).tokens()
    assert (result.statistics["restored"], result.statistics["captured"]) == (0, KEYS)
    assert "it was captured for other inputs" in result.errors


def test_other_weights_of_the_same_sizes_use_the_graphs(captured: Foundry, engine: Engine, tmp_path: Path) -> None:
    write_model(tmp_path, seed=2)
    options = generation(PROMPTS, 40, 0)
    expected = engine.run("--device", "cpu", *options, model=tmp_path)
    result = captured.restore(*options, model=tmp_path)
    assert result.tokens() == expected.tokens() != engine.reference(*options).tokens()
    assert (result.statistics["restored"], result.statistics["captured"]) == (KEYS, 0)


def test_graphs_of_other_kernels_are_given_up(captured: Foundry, engine: Engine, tmp_path: Path) -> None:
    build = tmp_path / "build"
    shutil.copytree(engine.program.parent, build)
    images = build / "images.c"
    images.write_text(images.read_text().replace("};", "0,};"))
    make(build)
    options = generation(PROMPTS, 40, 0)
    # Foundry sees another build of the program; where that is allowed, the engine sees that its kernels are others.
    for allow, mode in (((), "off"), (("mismatch-library",), "restore")):
        result = captured.restore(*options, program=build / "tinyllm", allow=allow)
        assert result.tokens() == engine.reference(*options).tokens()
        found = result.statistics
        assert (found["mode"], found["restored"], found["captured"]) == (mode, 0, KEYS)


def test_graphs_that_are_dropped_are_restored_again(captured: Foundry, engine: Engine) -> None:
    options = generation(PROMPTS, 300, 0)
    result = captured.restore(*options, "--held", "2")
    assert result.tokens() == engine.reference(*options).tokens()
    assert (result.statistics["captured"], result.statistics["eager"]) == (0, 0)
    assert result.statistics["restored"] == result.statistics["dropped"] + 2 > 3


@pytest.mark.parametrize("mode", ["", "capture"])
def test_unset_makes_the_same_launches_under_the_hook(engine: Engine, tmp_path: Path, mode: str) -> None:
    options = generation(PROMPTS, 40, 0)
    calls: list[list[str]] = []
    for name, environment in (
        ("plain", hooked_environment(None, tmp_path)),
        ("hooked", hooked_environment(mode, tmp_path)),
    ):
        report = tmp_path / name
        done = subprocess.run(
            engine.words(*options),
            env={**environment, "FOUNDRY_SIM_REPORT": str(report)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result_of(done).tokens() == engine.reference(*options).tokens()
        lines = report.read_text().splitlines()
        calls.append([line for line in lines if re.match(r"calls cu(Launch|Graph|.*Capture|Memcpy|Module)", line)])
    assert calls[0] == calls[1]
    assert any(line.startswith("calls cuLaunchKernel ") for line in calls[0])


def test_a_restore_with_graphs_off_uses_none(captured: Foundry, engine: Engine) -> None:
    options = generation(PROMPTS[:1], 40, 0)
    result = captured.restore(*options, **{SWITCH: "0"})
    assert result.tokens() == engine.reference(*options).tokens()
    assert (result.statistics["restored"], result.statistics["captured"], result.statistics["replayed"]) == (0, 0, 0)
