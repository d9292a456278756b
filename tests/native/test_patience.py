"""A driver call of the restore's own that does not come back: the program's threads wait for it for a time and no more.

FOUNDRY_SIM_HANG holds the first such call, which a background thread makes; FOUNDRY_PATIENCE is the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from native.restore_build import Outcome
from native.restore_scene import BASE, START, Scene, read_back

Run = Callable[..., Outcome]

BEGUN = "sleep:700"  # by then a background thread is in the call that hangs
OVERDUE = "program-0 disarmed a driver call of the restore does not come back"


def hung(run: Run, kernels: bytes, function: str, *commands: str) -> Outcome:
    """Run with the first call of a function hanging for an hour; the program must not notice for long."""
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    scene.add_pair("2", 7)
    begin = time.monotonic()
    outcome = run(scene, *START, "alloc:4096", BEGUN, *commands, FOUNDRY_SIM_HANG=f"{function}:1", FOUNDRY_PATIENCE="1")
    assert time.monotonic() - begin < 30
    return outcome


@pytest.mark.parametrize(
    "function",
    ["cuLibraryLoadData", "cuLibraryGetKernel", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuGraphCreate"],
)
def test_a_graph_is_given_up(run: Run, kernels: bytes, function: str) -> None:
    outcome = hung(run, kernels, function, "wait:decode:1", "wait:decode:2", "mode")
    assert OVERDUE in outcome.status
    *waits, mode = [line.split()[:2] for line in outcome.lines[1:]]
    # The thread that hangs may be at the other graph, and this one ready before it is given up.
    assert (len(waits), mode) == (2, ["mode", "0"])
    assert ["wait", "-1"] in waits and all(wait in (["wait", "-1"], ["wait", "0"]) for wait in waits)


@pytest.mark.parametrize("function", ["cuStreamSynchronize", "cuGraphInstantiateWithFlags"])
def test_a_context_is_destroyed(run: Run, kernels: bytes, function: str) -> None:
    outcome = hung(run, kernels, function, "release", "mode")
    assert OVERDUE in outcome.status
    assert outcome.last("mode").startswith("mode 0")


def test_the_programs_own_load_is_done(run: Run, kernels: bytes, kernels_file: Path) -> None:
    outcome = hung(run, kernels, "cuLibraryLoadData", f"library:{kernels_file}", "mode")
    assert outcome.last("library")
    assert OVERDUE in outcome.status


def test_two_threads_wait_no_longer_than_one(run: Run, kernels: bytes) -> None:
    outcome = hung(run, kernels, "cuGraphInstantiateWithFlags", "threads:8:decode:1:2:1")
    assert set(outcome.last("threads").split()[1:]) <= {"-1", "0"}
    assert OVERDUE in outcome.status


def test_a_call_that_is_only_slow_is_waited_for(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(
        scene,
        *START,
        "alloc:4096",
        "sleep:100",
        *read_back("1"),
        FOUNDRY_SIM_HANG="cuGraphInstantiateWithFlags:1:1000",
        FOUNDRY_PATIENCE="20",
    )
    assert outcome.lines == [f"alloc {BASE:#x}", "wait 0", "launch 0", "read 105 105 105 105"]


@pytest.mark.parametrize("text", ["", "0", "-1", "soon", "nan"])
def test_a_senseless_patience_is_the_usual_one(run: Run, kernels: bytes, text: str) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "alloc:4096", *read_back("1"), FOUNDRY_PATIENCE=text)
    assert outcome.lines[-1] == "read 105 105 105 105"
