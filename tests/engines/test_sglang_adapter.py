"""SGLang's start on stand-ins for its seams, with the real hook on the simulator: captured, and restored unedited."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.engine_starts import RELEASES, Engine, results

from foundry import archive

DECODE, PREFILL, SEGMENTS = 3, 2, 4
GRAPHS = DECODE + PREFILL * SEGMENTS


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path, "serve_sglang.py")


def require_whole(engine: Engine, plain: Any, told: Any, report: Any) -> None:
    assert told["outputs"] == plain["outputs"]
    assert (report["graphs_restored"], report["graphs_given_up"]) == (GRAPHS, 0)
    counters = report["counters"]
    assert counters["stream_captures"] == 0
    assert (counters["captures_skipped"], counters["warm_ups_skipped"]) == (GRAPHS, 2 * (DECODE + PREFILL) - 1)
    # One pass has the kernels loaded that a first request would else load.
    assert told["calls"] == {"prefill": 1, "decode": 0}


def test_every_graph_comes_back_with_one_run_of_the_model(engine: Engine) -> None:
    plain, _ = engine.capture()
    assert plain["outputs"] == engine.plain()["outputs"]
    sets = engine.sets()
    assert (sets["sglang/decode"], sets["sglang/prefill"]) == (DECODE, PREFILL * SEGMENTS)
    told, report, talk = engine.restore()
    require_whole(engine, plain, told, report)
    assert "captured as always" not in talk


def test_attention_runs_between_the_graphs_as_it_did(engine: Engine) -> None:
    plain, _ = engine.capture()
    told, _, _ = engine.restore()
    assert plain["attention_before_ready"] == PREFILL * (SEGMENTS - 1) * 3
    assert told["attention_before_ready"] == SEGMENTS - 1, "of the one pass"
    assert told["attention_while_serving"] == plain["attention_while_serving"] == PREFILL * (SEGMENTS - 1)


def test_every_graph_of_the_released_loops_comes_back(engine: Engine) -> None:
    """The functions of an unpacked wheel, run in place of the stand-ins' own."""
    release = next((name for name in os.environ.get(RELEASES, "").split(":") if Path(name, "sglang").is_dir()), None)
    if release is None:
        pytest.skip(f"{RELEASES} names no folder with an unpacked SGLang")
    plain, _ = engine.capture(STAND_IN_RELEASE=release)
    told, report, _ = engine.restore(STAND_IN_RELEASE=release)
    assert plain["outputs"] == engine.plain()["outputs"]
    require_whole(engine, plain, told, report)


def test_the_scheduler_process_is_found_again(engine: Engine) -> None:
    plain, _ = engine.capture("--spawn")
    assert engine.sets()["sglang/decode"] == DECODE
    told, report, _ = engine.restore("--spawn")
    require_whole(engine, plain, told, report)


def test_the_size_of_the_kv_cache_is_the_captures(engine: Engine) -> None:
    plain, _ = engine.capture("--free", "100")
    for free in ("99", "150"):
        told, report, _ = engine.restore("--free", free)
        assert told["tokens"] == 100
        require_whole(engine, plain, told, report)


def test_a_kv_cache_that_does_not_fit_is_refused_and_the_start_is_plain(engine: Engine) -> None:
    engine.capture("--free", "100")
    told, report, talk = engine.restore("--free", "90")
    assert "sglang: graphs are captured as always: GPU memory for 90 tokens is free" in talk
    assert (told["tokens"], report["graphs_restored"]) == (90, 0)
    assert told["outputs"] == engine.plain("--free", "90")["outputs"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--decode", "1,2"), "another decode_graphs[1]: recorded [1, 2, 4], found [1, 2]"),
        (("--prefill", "8"), "another prefill_graphs[1]: recorded [4, 8], found [8]"),
        (("--features", json.dumps({"quantization": "fp8"})), 'another quantization: recorded null, found "fp8"'),
        (("--features", json.dumps({"context_length": 32})), "another context_length: recorded 64, found 32"),
        (("--features", json.dumps({"enable_lora": True})), "LoRA is not done yet"),
        (("--attention", "fa3"), 'another attention: recorded "triton, triton", found "fa3, fa3"'),
    ],
)
def test_another_start_is_refused_by_name_and_runs_plainly(
    engine: Engine, options: tuple[str, ...], reason: str
) -> None:
    engine.capture()
    told, report, talk = engine.restore(*options)
    assert f"sglang: graphs are captured as always: {reason}" in talk
    assert report["graphs_restored"] == 0
    assert report["processes"][0]["given_up"][0]["reason"].startswith(reason)
    assert results(told) == results(engine.plain(*options))


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ({"speculative_algorithm": "EAGLE"}, "speculative decoding"),
        ({"enable_memory_saver": True}, "memory saver"),
        ({"enable_torch_compile": True}, "torch.compile of decode"),
        ({"disaggregation_mode": "prefill"}, "disaggregation"),
        ({"debug_cuda_graph": True}, "eager debugging of graphs"),
        ({"backends": {"decode": "breakable"}}, "decode graphs of backend `breakable`"),
        ({"backends": {"prefill": "tc_piecewise"}}, "prefill graphs of backend `tc_piecewise`"),
    ],
)
def test_what_is_not_done_is_captured_as_always_and_said_once(
    engine: Engine, features: dict[str, object], reason: str
) -> None:
    told, talk = engine.capture("--features", json.dumps(features))
    assert talk.count(f"{reason} is not done yet") == 1
    assert engine.sets() == {"": GRAPHS}
    assert told["outputs"] == engine.plain()["outputs"]


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"STAND_IN_VERSION": "0.5.18"}, "version 0.5.18 is not known, only 0.5.17"),
        ({"SGLANG_ENABLE_CUDA_GRAPH_DEDUP": "1"}, "graphs that share executables"),
    ],
)
def test_another_release_or_mode_is_said_in_one_line(engine: Engine, environment: dict[str, str], reason: str) -> None:
    told, talk = engine.capture(**environment)
    assert talk.count(reason) == 1
    assert engine.sets() == {"": GRAPHS}
    assert told["outputs"] == engine.plain()["outputs"]


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"STAND_IN_VERSION": "0.5.18"}, "sglang: version 0.5.18 is not known, only 0.5.17"),
        ({"STAND_IN_MODEL": "other"}, 'sglang: graphs are captured as always: another model: recorded "'),
    ],
)
def test_another_release_or_model_than_the_captures_is_refused_by_name_and_starts_plainly(
    engine: Engine, environment: dict[str, str], reason: str
) -> None:
    engine.capture()
    told, report, talk = engine.restore(**environment)
    assert talk.count(reason) == 1
    assert (report["graphs_restored"], report["counters"]["stream_captures"]) == (0, GRAPHS)
    assert results(told) == results(engine.plain())


@pytest.mark.parametrize("features", [{"page_size": None, "cpu_offload_gb": {"odd": 1}}, {"enable_lora": None}])
def test_odd_settings_do_no_harm(engine: Engine, features: dict[str, object]) -> None:
    told, _ = engine.capture("--features", json.dumps(features))
    assert told["outputs"] == engine.plain()["outputs"]


def test_a_fault_of_the_adapter_is_none_of_the_engine(engine: Engine) -> None:
    told, talk = engine.capture(STAND_IN_MODEL="broken")
    assert talk.count("sglang: graphs are captured as always: ValueError: no description") == 1
    assert engine.sets() == {"": GRAPHS}
    assert told["outputs"] == engine.plain()["outputs"]


@pytest.mark.parametrize("kind", ["other", "giving"])
def test_a_break_that_is_not_known_is_captured_as_always(engine: Engine, kind: str) -> None:
    environment = {"STAND_IN_ATTENTION_KIND": kind}
    plain, talk = engine.capture(**environment)
    assert "a break between graphs at " in talk
    told, report, _ = engine.restore(**environment)
    assert told["outputs"] == plain["outputs"]
    assert report["graphs_restored"] == DECODE
    assert told["calls"] == {"prefill": 3 * PREFILL, "decode": 0}


def test_outputs_that_cannot_be_stored_are_captured_as_always(engine: Engine) -> None:
    plain, _ = engine.capture(STAND_IN_ODD_OUTPUT="1")
    told, report, talk = engine.restore(STAND_IN_ODD_OUTPUT="1")
    assert "which an archive cannot hold" in talk
    assert report["graphs_restored"] == PREFILL * SEGMENTS
    assert told["outputs"] == plain["outputs"]
    assert told["calls"] == {"prefill": 1, "decode": 3 * DECODE}


def test_only_a_restore_digests_tritons_files_while_weights_are_loaded(engine: Engine) -> None:
    assert engine.capture()[0]["sooner"]["key_computed_by"] == ["MainThread"]
    assert engine.restore()[0]["sooner"]["key_computed_by"] == ["foundry-digests"]


def test_random_numbers_in_a_graph_are_refused(engine: Engine) -> None:
    plain, _ = engine.capture(STAND_IN_RANDOM="1")
    told, report, talk = engine.restore(STAND_IN_RANDOM="1")
    assert "random numbers inside a graph of sglang" in talk
    assert (report["graphs_restored"], report["graphs_given_up"]) == (PREFILL * SEGMENTS, DECODE)
    assert told["outputs"] == plain["outputs"]


def test_another_layout_of_memory_is_found_before_a_graph_is_used(engine: Engine) -> None:
    plain, _ = engine.capture()
    told, report, talk = engine.restore("--shift")
    assert talk.count("torch's live allocations before the first graph differ") >= 1
    assert report["graphs_restored"] == 0
    assert "warm_ups_skipped" not in report["counters"]
    assert told["outputs"] == plain["outputs"]


def test_a_graph_that_cannot_be_built_takes_its_row_along(engine: Engine) -> None:
    plain, _ = engine.capture()
    for failing in range(1, 16):  # which graph is built when depends on threads
        told, report, talk = engine.restore(FOUNDRY_SIM_FAIL=f"cuGraphInstantiateWithFlags:{failing}")
        assert told["outputs"] == plain["outputs"]
        if "another graph of its row cannot be restored" in talk:
            assert report["graphs_given_up"] >= 2
            assert report["graphs_restored"] == GRAPHS - SEGMENTS
            assert told["calls"] == {"prefill": 1 + 3, "decode": 0}
            return
    raise AssertionError("no graph of a row was hit")


def test_two_captures_at_other_handles_are_the_same(engine: Engine) -> None:
    found = []
    for _ in range(2):
        engine.capture()
        found.append(archive.summary(engine.line.work / "a.fdry").capture_id)
    assert found[0] == found[1]
