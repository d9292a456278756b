"""A graph that is asked for long before its turn does not share the driver with the background threads."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from native.restore_build import Outcome
from native.restore_scene import BASE, KERNEL, PLAIN, START, Scene, read_back

Run = Callable[..., Outcome]

OTHERS, NODES = 60, 60
SLOW = "cuGraphInstantiateWithFlags:1+:5,cuGraphAddKernelNode_v2:1+:5"


@pytest.fixture
def scene(kernels: bytes) -> Scene:
    """Many small graphs, and after them a large one of another shape, which takes as long as all of them."""
    made = Scene(kernels)
    for key in range(OTHERS):
        made.add_pair(str(key), key, first_use=key)
    nodes: list[dict[str, object]] = [{"type": KERNEL, "kernel": made.fill} for _ in range(NODES)]
    group = made.file.group(nodes, [(at, at + 1, PLAIN) for at in range(NODES - 1)])
    first = made.fill_record(BASE, 7)
    for _ in range(NODES - 1):
        made.fill_record(BASE, 7)
    made.add_graph(group, first, "large", first_use=OTHERS)
    return made


def test_the_background_lets_it_pass(run: Run, scene: Scene) -> None:
    outcome = run(
        scene,
        *START,
        "alloc:4096",
        *read_back("large"),
        "counter:graphs_built",
        "counter:graphs_ahead",
        f"built:{OTHERS + 1}",
        "counter:graphs_built",
        FOUNDRY_SIM_HANG=SLOW,
    )
    assert "read 7 7 7 7" in outcome.lines
    assert outcome.last("graphs_ahead") == "graphs_ahead 1"
    built, all_built = (int(line.split()[1]) for line in outcome.lines if line.startswith("graphs_built"))
    assert built <= 8, "the background went on meanwhile"
    assert all_built == OTHERS + 1, "it does not go on afterwards"


def test_who_asks_in_turn_has_its_help(run: Run, scene: Scene) -> None:
    asked = [f"wait:decode:{key}" for key in range(OTHERS)]
    outcome = run(scene, *START, "alloc:4096", *asked, "counter:graphs_ahead", FOUNDRY_SIM_HANG=SLOW)
    assert outcome.last("graphs_ahead") == "graphs_ahead 0"
