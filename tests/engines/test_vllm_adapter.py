"""vLLM's start on stand-ins for its seams, with the real hook on the simulator: captured, and restored unedited."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from helpers.engine_starts import RELEASES, Engine, results

from foundry import archive

SIZES = 3
PIECES = 3


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path, "serve.py")


@pytest.mark.parametrize("runner", [(), ("--v1",)], ids=["v2", "v1"])
@pytest.mark.parametrize(
    ("mode", "full", "pieces"),
    [("FULL", SIZES, 0), ("PIECEWISE", 0, SIZES * PIECES), ("FULL_AND_PIECEWISE", SIZES, SIZES * PIECES)],
)
def test_every_graph_comes_back(engine: Engine, runner: tuple[str, ...], mode: str, full: int, pieces: int) -> None:
    options = (*runner, "--mode", mode)
    plain, _ = engine.capture(*options)
    wanted = {"vllm/full": full, "vllm/pieces": pieces}
    found = engine.sets()
    assert {name: found.get(name, 0) for name in wanted} == wanted
    assert set(found) <= {"notes", *wanted}
    told, report, talk = engine.restore(*options, "--free", "5000")
    assert told["outputs"] == plain["outputs"]
    assert (report["graphs_restored"], report["graphs_given_up"]) == (full + pieces, 0)
    counters = report["counters"]
    assert counters["stream_captures"] == 0
    assert counters["captures_skipped"] == full + pieces
    assert counters["warm_ups_skipped"] == (full > 0) * SIZES + (pieces > 0) * SIZES
    assert "captured as always" not in talk


@pytest.mark.parametrize("runner", [(), ("--v1",)], ids=["v2", "v1"])
def test_every_graph_of_the_released_loops_comes_back(engine: Engine, runner: tuple[str, ...]) -> None:
    """The functions of an unpacked wheel, run in place of the stand-ins' own."""
    release = next((name for name in os.environ.get(RELEASES, "").split(":") if Path(name, "vllm").is_dir()), None)
    if release is None:
        pytest.skip(f"{RELEASES} names no folder with an unpacked vLLM")
    plain, _ = engine.capture(*runner, STAND_IN_RELEASE=release)
    told, report, _ = engine.restore(*runner, STAND_IN_RELEASE=release)
    assert told["outputs"] == plain["outputs"] == engine.plain(*runner)["outputs"]
    assert (report["graphs_restored"], report["graphs_given_up"]) == (SIZES * (PIECES + 1), 0)
    assert report["counters"]["stream_captures"] == 0
    assert told["calls"] == {"forward": 2, "piece": PIECES}
    assert told["plain_wrapper"] == "__call__", "the stand-in's own is called CUDAGraphWrapper.__call__"
    assert told["captured"] == plain["captured"] == SIZES * (PIECES + 1)


def test_an_engine_in_a_process_of_its_own_is_found_again(engine: Engine) -> None:
    plain, _ = engine.capture("--spawn")
    assert engine.sets()["vllm/full"] == SIZES
    told, report, _ = engine.restore("--spawn")
    assert told["outputs"] == plain["outputs"]
    assert report["graphs_restored"] == SIZES * (PIECES + 1)


def test_the_size_of_the_kv_cache_is_the_captures(engine: Engine) -> None:
    plain, _ = engine.capture("--free", "6400")
    told, _, _ = engine.restore("--free", "5000")
    assert (plain["available"], told["available"]) == (6400, 6400)


@pytest.mark.parametrize("runner", [(), ("--v1",)], ids=["v2", "v1"])
def test_profiling_warm_ups_and_captured_bodies_are_left_out(engine: Engine, runner: tuple[str, ...]) -> None:
    plain, _ = engine.capture(*runner)
    told, report, _ = engine.restore(*runner)
    assert (plain["profiled"], told["profiled"]) == (1, 0)
    # One pass has the compiled model loaded; the loop over the pieces runs it for the first size, without their bodies.
    assert told["calls"] == {"forward": 2, "piece": PIECES}
    assert report["counters"]["profile_runs_skipped"] == 1
    assert told["captured"] == plain["captured"] == SIZES * (PIECES + 1)


def test_a_model_that_is_not_compiled_is_not_run_at_all(engine: Engine) -> None:
    options = ("--mode", "FULL", "--not-compiled")
    engine.capture(*options)
    told, report, _ = engine.restore(*options)
    assert told["calls"] == {"forward": 0, "piece": 0}
    assert report["graphs_restored"] == SIZES


def test_nothing_of_the_adapter_stays_in_the_way_of_serving(engine: Engine) -> None:
    assert engine.capture()[0]["plain_wrapper"] == "CUDAGraphWrapper.__call__"
    assert engine.restore()[0]["plain_wrapper"] == "CUDAGraphWrapper.__call__"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--layers", "4"), 'another model: recorded "'),
        (("--quantization", "fp8"), 'another quantization: recorded "None", found "fp8"'),
        (("--max-len", "32"), "another max_model_len: recorded 64, found 32"),
        (("--sizes", "1,4"), "another cudagraph_capture_sizes: recorded [1, 2, 4], found [1, 4]"),
        (
            ("--attention-backend", "TRITON_ATTN"),
            'another attention_backend: recorded "FLASH_ATTN", found "TRITON_ATTN"',
        ),
        (("--sizes", "1,2"), "another max_num_seqs: recorded 4, found 2"),
        (("--v1",), 'another runner: recorded "v2", found "v1"'),
        (("--mode", "FULL"), "another cudagraph_mode: recorded"),
        (("--lora",), "LoRA is not done yet"),
    ],
)
def test_another_start_is_refused_by_name_and_runs_plainly(
    engine: Engine, options: tuple[str, ...], reason: str
) -> None:
    engine.capture()
    told, report, talk = engine.restore(*options)
    assert f"vllm: graphs are captured as always: {reason}" in talk
    assert report["graphs_restored"] == 0
    assert report["processes"][0]["given_up"][0]["reason"].startswith(reason)
    assert told["profiled"] == 1
    assert results(told) == results(engine.plain(*options))


def test_another_attention_backend_is_refused_by_name(engine: Engine) -> None:
    plain, _ = engine.capture()
    told, report, talk = engine.restore(STAND_IN_ATTENTION="TRITON_ATTN")
    assert 'another attention: recorded "FLASH_ATTN", found "TRITON_ATTN"' in talk
    assert report["graphs_restored"] == 0
    assert told["outputs"] == plain["outputs"]


def test_another_release_than_the_captures_is_refused_by_name_and_starts_plainly(engine: Engine) -> None:
    engine.capture()
    told, report, talk = engine.restore(STAND_IN_VERSION="0.27.0")
    assert talk.count("vllm: version 0.27.0 is not known, only 0.26.0: its graphs are captured as always") == 1
    assert (report["graphs_restored"], report["counters"]["stream_captures"]) == (0, SIZES * (PIECES + 1))
    assert results(told) == results(engine.plain())


def test_switched_off_nothing_is_named_and_nothing_comes_back(engine: Engine) -> None:
    told, talk = engine.capture(FOUNDRY_ADAPTERS="0")
    assert engine.sets() == {"": SIZES * (PIECES + 1)}
    assert "captured as always" not in talk
    assert results(told) == results(engine.plain())
    engine.capture()
    told, report, talk = engine.restore(FOUNDRY_ADAPTERS="0")
    assert (report["graphs_restored"], results(told)) == (0, results(engine.plain()))


@pytest.mark.parametrize("verb", ["capture", "restore"])
def test_a_switch_that_says_nothing_is_named_and_ignored(engine: Engine, verb: str) -> None:
    odd = {"FOUNDRY_ADAPTERS": "off"}
    told, *_, talk = engine.capture(**odd)
    if verb == "restore":
        told, report, talk = engine.restore(**odd)
        assert report["graphs_restored"] == SIZES * (PIECES + 1)
    assert talk.count("warning: `FOUNDRY_ADAPTERS=off` is ignored, it is neither 0 nor 1") == 1
    assert engine.sets()["vllm/full"] == SIZES
    assert told["outputs"] == engine.plain()["outputs"]


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"VLLM_USE_BREAKABLE_CUDAGRAPH": "1"}, "breakable graphs (VLLM_USE_BREAKABLE_CUDAGRAPH) is not done yet"),
        ({"STAND_IN_VERSION": "0.27.0"}, "version 0.27.0 is not known, only 0.26.0"),
    ],
)
def test_what_is_not_done_is_captured_as_always_and_said_once(
    engine: Engine, environment: dict[str, str], reason: str
) -> None:
    told, talk = engine.capture(**environment)
    assert talk.count(reason) == 1
    assert engine.sets() == {"": SIZES * (PIECES + 1)}
    assert told["outputs"]["FULL 2"] == [102, 28]


@pytest.mark.parametrize(
    ("options", "environment"),
    [(("--odd",), {}), ((), {"STAND_IN_ATTENTION": "broken"}), ((), {"STAND_IN_WORKSPACE": "broken"})],
)
def test_a_fault_of_the_adapter_is_none_of_the_engine(
    engine: Engine, options: tuple[str, ...], environment: dict[str, str]
) -> None:
    told, talk = engine.capture(*options, **environment)
    assert "vllm: graphs are captured as always: " in talk
    assert told["outputs"] == engine.plain()["outputs"]
    told, report, _ = engine.restore(*options, **environment)
    assert report["graphs_restored"] == 0
    assert told["outputs"] == engine.plain()["outputs"]


def test_a_local_version_is_the_release(engine: Engine) -> None:
    engine.capture(STAND_IN_VERSION="0.26.0+cu130")
    assert engine.sets()["vllm/full"] == SIZES


def test_a_workspace_that_warm_ups_size_is_refused_at_restore(engine: Engine) -> None:
    engine.capture(STAND_IN_WORKSPACE="1")
    told, report, talk = engine.restore(STAND_IN_WORKSPACE="1")
    assert "an attention or expert workspace, whose size warm-ups find out, is not done yet" in talk
    assert (told["profiled"], report["graphs_restored"]) == (1, 0)


def test_random_numbers_in_a_graph_are_refused(engine: Engine) -> None:
    plain, _ = engine.capture("--random")
    told, report, talk = engine.restore("--random")
    assert "random numbers inside a graph of vllm" in talk
    assert (report["graphs_restored"], report["graphs_given_up"]) == (0, SIZES * (PIECES + 1))
    assert told["outputs"] == plain["outputs"]


def test_another_layout_of_memory_is_found_before_a_graph_is_used(engine: Engine) -> None:
    plain, _ = engine.capture()
    told, report, talk = engine.restore("--shift")
    assert talk.count("torch's live allocations before the first graph differ") >= 1
    assert report["graphs_restored"] == 0
    assert "warm_ups_skipped" not in report["counters"]
    assert told["outputs"] == plain["outputs"]


NOTES = {(): 4, ("--v1",): 3}
"""What the adapter writes down is built before its graphs."""


@pytest.mark.parametrize("options", NOTES, ids=["v2", "v1"])
@pytest.mark.parametrize("graph", [1, 2, 4, 5])
@pytest.mark.parametrize("slow", [False, True], ids=["built before", "built when asked for"])
def test_a_graph_that_cannot_be_built_is_warmed_up_and_captured(
    engine: Engine, options: tuple[str, ...], graph: int, slow: bool
) -> None:
    plain, _ = engine.capture(*options)
    build = "cuGraphInstantiateWithFlags"
    faults = {"FOUNDRY_SIM_FAIL": f"{build}:{NOTES[options] + graph}"}
    told, report, talk = engine.restore(*options, **faults, **({"FOUNDRY_SIM_HANG": f"{build}:1+:20"} if slow else {}))
    assert told["outputs"] == plain["outputs"]
    assert "is captured, not restored: cuGraphInstantiateWithFlags" in talk
    # A piece that is captured anew has its outputs elsewhere, and so do all behind it; other sizes are not touched.
    assert 1 <= report["graphs_given_up"] <= PIECES
    assert report["graphs_restored"] + report["graphs_given_up"] == SIZES * (PIECES + 1)


def test_a_check_tells_that_there_is_nothing_to_compare(engine: Engine) -> None:
    plain, _ = engine.capture()
    told, report, _ = engine.restore(words=("--check",))
    assert (report["graphs_restored"], report["witnesses"]["missing"]) == (SIZES * (PIECES + 1), SIZES * (PIECES + 1))
    assert told["outputs"] == plain["outputs"]


def test_a_plain_graph_beside_the_engines_is_counted(engine: Engine) -> None:
    engine.capture("--torch-graph")
    _, report, _ = engine.restore("--torch-graph")
    assert report["counters"]["graphs_without_a_key"] == 1
    assert report["graphs_restored"] == SIZES * (PIECES + 1)


def test_two_captures_at_other_handles_are_the_same(engine: Engine) -> None:
    found = []
    for _ in range(2):
        engine.capture()
        found.append(archive.summary(engine.line.work / "a.fdry").capture_id)
    assert found[0] == found[1]


def test_a_python_that_ignores_the_environment_is_named(engine: Engine) -> None:
    command = ("--", sys.executable, "-I", "-c", "pass")
    done = engine.line.run("capture", "--sim", "-o", "b.fdry", *command)
    assert "`python -I` leaves the adapters for engines and torch out" in done.stderr


def test_the_compiled_model_is_kept_as_one_artifact_by_vllms_own_switch(engine: Engine) -> None:
    assert engine.plain()["one_artifact"] is False
    told, talk = engine.capture()
    assert told["one_artifact"] is True
    assert talk.count("vllm: its compiled model is kept as one artifact") == 1
    engine.forget_caches()
    told, report, _ = engine.restore()
    assert (told["one_artifact"], told["sooner"]["loaded"]) == (True, True)
    assert report["graphs_restored"] == SIZES * (PIECES + 1)


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ((), {"VLLM_USE_MEGA_AOT_ARTIFACT": "0"}),
        ((), {"VLLM_USE_AOT_COMPILE": "0"}),
        ((), {"VLLM_USE_STANDALONE_COMPILE": "0"}),
        ((), {"VLLM_DISABLE_COMPILE_CACHE": "1"}),
        ((), {"STAND_IN_TORCH_VERSION": "2.9.1"}),
        (("--keep-environment",), {}),
        (("--lora",), {}),
    ],
)
def test_it_is_not_where_its_user_chose_or_it_could_not_be(
    engine: Engine, options: tuple[str, ...], variables: dict[str, str]
) -> None:
    plain, talk = engine.capture(*options, **variables)
    assert plain["one_artifact"] is False
    assert "one artifact" not in talk
    told, report, _ = engine.restore(*options, **variables)
    assert told["one_artifact"] is False
    assert report["graphs_restored"] == (0 if options == ("--lora",) else SIZES * (PIECES + 1))


@pytest.mark.parametrize("chosen", [{}, {"VLLM_USE_MEGA_AOT_ARTIFACT": "1"}])
def test_a_restore_keeps_the_compiled_model_as_the_capture_did(engine: Engine, chosen: dict[str, str]) -> None:
    """Else what the archive's caches have is not found. Archives of earlier captures tell no more than the first."""
    engine.capture(VLLM_USE_MEGA_AOT_ARTIFACT="0")
    engine.forget_caches()
    told, report, _ = engine.restore(**chosen)
    assert (told["one_artifact"], told["sooner"]["loaded"]) == (bool(chosen), not chosen)
    assert report["graphs_restored"] == SIZES * (PIECES + 1)


def test_a_restore_without_that_artifact_loads_what_a_plain_start_would(engine: Engine) -> None:
    engine.capture()
    engine.forget_caches()
    assert engine.plain()["sooner"]["loaded"] is False
    told, report, _ = engine.restore(words=("--no-caches",))
    assert (told["one_artifact"], told["sooner"]["loaded"]) == (False, True)
    assert report["graphs_restored"] == SIZES * (PIECES + 1)


def test_only_a_restore_sets_aside_what_a_later_collection_would_look_at(engine: Engine) -> None:
    assert engine.capture()[0]["sooner"]["frozen"] is False
    assert engine.restore()[0]["sooner"]["frozen"] is True


def test_only_a_restore_digests_tritons_files_while_weights_are_loaded(engine: Engine) -> None:
    assert engine.capture()[0]["sooner"]["key_computed_by"] == ["MainThread"]
    assert engine.restore()[0]["sooner"]["key_computed_by"] == ["foundry-digests"]


def test_inputs_of_pieces_are_prepared_for_the_first_size_only(engine: Engine) -> None:
    assert engine.capture()[0]["prepared"] == {"FULL": 2 * SIZES, "PIECEWISE": SIZES}
    assert engine.restore()[0]["prepared"] == {"FULL": 2 * SIZES, "PIECEWISE": 1}


def test_full_graphs_write_into_memory_that_a_restore_has_before_the_loop(engine: Engine) -> None:
    """So they can be built while the pieces are given, though the driver looks at what a copy writes to."""
    engine.capture()
    shown = engine.line.run("inspect", "--memory", "--json", "a.fdry")
    memory = json.loads(shown.stdout)["processes"][0]["allocations"]
    (kv_cache,) = [one["born"] for one in memory if one["size"] == 6400]
    assert [one for one in memory if one["arena"] == "main" and one["graphs"] and one["born"] > kv_cache] == []
    assert engine.restore()[1]["graphs_restored"] == SIZES * (PIECES + 1)
