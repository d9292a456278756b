"""Graphs of every kind that programs build: each is restored exactly, or refused by name and captured anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.native_build import link_simulator, make_kernels
from helpers.roundtrip import Program, Run
from native.hook_run import Bench

from foundry import diff, findings
from foundry.model import Process

RESTORED = (
    *("shared-99", "shared-200", "cluster-8", "cluster-16", "cooperative", "parameters", "global", "programmatic"),
    *("empty", "no-nodes", "child-3", "memset-1", "memset-2", "memset-4", "device-to-device", "rows"),
    *("unified-to-unified", "events", "user-object", "library-kernel", "layers", "jit-options"),
)
REFUSED = {
    "shared-event": (findings.EVENT_SHARED, "event"),
    "updatable": (findings.NODE_UNSUPPORTED, "device-updatable"),
    "host": (findings.NODE_UNSUPPORTED, "calls a host function"),
    "memory": (findings.NODE_UNSUPPORTED, "allocates memory within the graph"),
    "if": (findings.NODE_UNSUPPORTED, "conditional node"),
    "if-not": (findings.NODE_UNSUPPORTED, "conditional node"),
    "while": (findings.NODE_UNSUPPORTED, "conditional node"),
    "switch": (findings.NODE_UNSUPPORTED, "conditional node"),
    "child-in-conditional": (findings.NODE_UNSUPPORTED, "conditional node"),
    "ordinary-to-device": (findings.HOST_COPY, "host"),
    "pinned-to-device": (findings.HOST_COPY, "host"),
    "device-to-ordinary": (findings.HOST_COPY, "host"),
    "device-to-pinned": (findings.HOST_COPY, "host"),
    "layers-to-host": (findings.HOST_COPY, "host"),
    "layers-from-host": (findings.HOST_COPY, "host"),
    "host-to-host": (findings.HOST_COPY, "host"),
    "managed-to-device": (findings.FOREIGN_MEMORY, "managed"),
    "unified-from-host": (findings.FOREIGN_MEMORY, "not seen to be allocated"),
}
KEYS = (*RESTORED, *REFUSED)
LARGE = """
#include "sim_kernel.h"
// global: large 73400320
FOUNDRY_SIM_GLOBAL uint8_t large[70 << 20] = {1};
// global: table 64
FOUNDRY_SIM_GLOBAL uint32_t table[16];
// global: offset 4
FOUNDRY_SIM_GLOBAL uint32_t offset;
// kernel: add_one(ptr)
FOUNDRY_SIM_KERNEL(add_one) {
    *FOUNDRY_SIM_ARGUMENT(0, uint32_t *) += large[0];
}
"""


def program(bench: Bench, *words: str, image: str = "special.image") -> Program:
    binary = bench.program("nodes", *link_simulator())
    path = image if image.startswith("file:") else str(bench.folder / image)
    return Program([str(binary), path, *words])


def graphs(process: Process) -> dict[str, tuple[str, str]]:
    return {graph.key: (graph.reason_code, graph.reason) for graph in process.graphs}


def results(run: Run) -> dict[str, tuple[str, str]]:
    lines = (line.split() for line in run.output.splitlines() if not line.startswith("refused "))
    return {key: (how, value) for key, how, value in lines}


@pytest.fixture(scope="module")
def captured(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return program(bench, *KEYS).captured(tmp_path_factory.mktemp("nodes") / "captured", 7)


@pytest.fixture(scope="module")
def restored(bench: Bench, captured: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("nodes") / "restored"
    return program(bench, *KEYS).restored(folder, 11, captured.capture)


@pytest.mark.parametrize("key", RESTORED)
def test_it_comes_back_and_computes_the_same(captured: Run, restored: Run, key: str) -> None:
    assert graphs(captured.capture.processes[0])[key] == ("", "")
    assert results(captured)[key][0] == "captured"
    assert results(restored)[key] == ("restored", results(captured)[key][1])


@pytest.mark.parametrize("key", REFUSED)
def test_it_is_refused_by_name_and_captured_anew(captured: Run, restored: Run, key: str) -> None:
    code, text = REFUSED[key]
    told = graphs(captured.capture.processes[0])[key]
    assert told[0] == code
    assert text in told[1]
    assert results(restored)[key] == results(captured)[key]
    assert f"refused {key}: " in restored.output


def test_nothing_of_a_graph_differs(captured: Run, restored: Run) -> None:
    """Limits of kernels may be higher than they were: those of all graphs that use one are set."""
    told = [str(one) for one in diff.compare(captured.capture, restored.capture)]
    of = [line for line in told if line.split("graph nodes/")[1].split(":")[0] in RESTORED]
    assert [line for line in of if "function attributes" not in line] == []


@pytest.mark.parametrize(
    "order", [("shared-200", "shared-99"), ("cluster-16", "cluster-8"), ("shared-99", "cluster-16")]
)
def test_a_kernels_limit_is_that_of_the_graph_that_needs_most(
    bench: Bench, tmp_path: Path, order: tuple[str, str]
) -> None:
    """C24: whichever is built first."""
    made = program(bench, *order)
    captured = made.captured(tmp_path / "captured", 7)
    for turn in range(4):
        restored = made.restored(tmp_path / f"restored-{turn}", turn, captured.capture)
        assert restored.output == captured.output.replace("captured", "restored")


@pytest.mark.parametrize("loading", ["LAZY", "EAGER"])
@pytest.mark.parametrize(
    "words", [("library-kernel", "unload", "memset-1"), ("parameters", "unload", "load", "global")]
)
def test_an_image_that_was_unloaded_before_the_end(
    bench: Bench, tmp_path: Path, words: tuple[str, ...], loading: str
) -> None:
    """C50: handles of the library, and images that are there for a time only."""
    made = replace(program(bench, *words), environment=(("CUDA_MODULE_LOADING", loading),))
    captured = made.captured(tmp_path / "captured", 7)
    restored = made.restored(tmp_path / "restored", 11, captured.capture)
    assert restored.output == captured.output.replace("captured", "restored")


def test_the_file_of_an_image_may_be_gone(bench: Bench, tmp_path: Path) -> None:
    """C50, C20: nothing of the image but what the archive holds is there, not even its name."""
    path = tmp_path / "kernels.image"
    path.write_bytes((bench.folder / "special.image").read_bytes())
    made = program(bench, "library-kernel", "parameters", "shared-99", image=f"file:{path}")
    captured = made.captured(tmp_path / "captured", 7)
    path.unlink()
    restored = made.restored(tmp_path / "restored", 11, captured.capture)
    assert restored.output == captured.output.replace("captured", "restored")


def test_an_image_past_64_mb(bench: Bench, tmp_path: Path) -> None:
    """C49."""
    source = tmp_path / "large.c"
    source.write_text(LARGE)
    make_kernels(tmp_path / "large.image", source)
    assert (tmp_path / "large.image").stat().st_size > 64 << 20
    made = program(bench, "library-kernel", image=str(tmp_path / "large.image"))
    captured = made.captured(tmp_path / "captured", 7)
    restored = made.restored(tmp_path / "restored", 11, captured.capture)
    assert restored.output == captured.output.replace("captured", "restored")
