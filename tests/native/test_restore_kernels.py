"""Kernel images and kernels of a restore: one copy of each, in the hands of the graphs and of the program."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from native.restore_build import Outcome
from native.restore_scene import (
    BASE,
    GRAPH_ARENA,
    KERNEL,
    MODULE,
    PLAIN,
    START,
    Scene,
    read_back,
)

Run = Callable[..., Outcome]


def test_other_parameter_layout_is_refused(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    wrong = scene.file.kernel(scene.image, "add_bias", [(0, 8), (8, 8)])
    first = scene.file.kernel_record((1, 1, 1), (1, 1, 1), bytes(16))
    scene.add_graph(scene.file.group([{"type": KERNEL, "kernel": wrong}], []), first, "1")
    outcome = run(scene, *START, "alloc:4096", "wait:decode:1")
    assert outcome.lines[1:] == ["wait -1 kernel `add_bias`: parameter 1 lies at 8 of 4 bytes, captured at 8 of 8"]


def test_kernel_with_more_parameters_is_refused(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    wrong = scene.file.kernel(scene.image, "fill", [(0, 8), (8, 4)])
    first = scene.file.kernel_record((1, 1, 1), (1, 1, 1), bytes(12))
    scene.add_graph(scene.file.group([{"type": KERNEL, "kernel": wrong}], []), first, "1")
    outcome = run(scene, *START, "alloc:4096", "wait:decode:1")
    assert outcome.lines[1:] == ["wait -1 kernel `fill`: it takes more than the 2 parameters of the capture"]


def test_programs_later_load_gets_the_engines_handle(run: Run, kernels: bytes, kernels_file: Path) -> None:
    scene = Scene(kernels)
    group = scene.file.group(
        [{"type": KERNEL, "kernel": scene.fill}, {"type": KERNEL, "kernel": scene.add_bias}], [(0, 1, PLAIN)]
    )
    first = scene.fill_record(BASE, 1)
    scene.file.kernel_record((1, 1, 1), (1, 1, 1), struct.pack("<QI", BASE, 4))
    scene.add_graph(group, first, "1")
    load, handed_over = f"library:{kernels_file}", "counter:images_handed_over"
    commands = [load, "global:0:bias:41", *read_back("1"), "unload:0", *read_back("1"), handed_over]
    again = [load, "unload:1", *read_back("1"), handed_over]
    outcome = run(scene, *START, "built:1", "alloc:4096", *commands, *again)
    assert [line for line in outcome.lines if line.startswith("read")] == ["read 42 42 42 42"] * 3
    assert [line for line in outcome.lines if line.startswith("images_handed_over")] == ["images_handed_over 1"] * 2
    first_handle, second_handle = (line.split()[1] for line in outcome.lines if line.startswith("library"))
    assert first_handle != second_handle


@pytest.mark.parametrize("api", ["library", "module"])
def test_programs_earlier_load_is_used_by_the_graphs(run: Run, kernels: bytes, kernels_file: Path, api: str) -> None:
    scene = Scene(kernels, **({"api": MODULE} if api == "module" else {}))
    # The engine's own first load fails, so that only the program's can serve.
    group = scene.file.group(
        [{"type": KERNEL, "kernel": scene.fill}, {"type": KERNEL, "kernel": scene.add_bias}], [(0, 1, PLAIN)]
    )
    first = scene.fill_record(BASE, 1)
    scene.file.kernel_record((1, 1, 1), (1, 1, 1), struct.pack("<QI", BASE, 4))
    scene.add_graph(group, first, "1")
    outcome = run(
        scene,
        *START,
        f"{api}:{kernels_file}",
        "global:0:bias:41",
        "alloc:4096",
        *read_back("1"),
        "unload:0",
        *read_back("1"),
    )
    assert [line for line in outcome.lines if line.startswith("read")] == ["read 42 42 42 42"] * 2


def test_attributes_of_kernels_are_set(run: Run, kernels: bytes, kernels_file: Path) -> None:
    scene = Scene(kernels)
    limited = scene.file.kernel(scene.image, "fill", [(0, 8), (8, 4), (12, 4)], attributes=((8, 65536),))
    first = scene.fill_record(BASE, 5)
    scene.add_graph(scene.file.group([{"type": KERNEL, "kernel": limited}], []), first, "1")
    outcome = run(
        scene, *START, "built:1", f"library:{kernels_file}", "attribute:0:fill:8", "alloc:4096", *read_back("1")
    )
    assert outcome.last("attribute") == "attribute 65536"
    assert outcome.last("read") == "read 5 5 5 5"


def test_launch_attributes_are_set_and_edges_keep_their_ports(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    priority = struct.pack("<i", -3)
    programmatic = struct.pack("<BBB5x", 1, 0, 1)
    nodes: list[dict[str, object]] = [
        {"type": KERNEL, "kernel": scene.fill, "attributes": [(8, priority), (9, b"\0\1")]},
        {"type": KERNEL, "kernel": scene.add, "attributes": [(8, priority)]},
        {"type": KERNEL, "kernel": scene.add},
    ]
    group = scene.file.group(nodes, [(0, 1, programmatic), (1, 2, PLAIN), (0, 2, PLAIN)])
    for key, value in (("1", 5), ("2", 6)):
        first = scene.fill_record(BASE, value)
        scene.add_record(BASE, GRAPH_ARENA)
        scene.add_record(BASE, GRAPH_ARENA)
        scene.add_graph(group, first, key)
    outcome = run(scene, *START, "alloc:4096", *read_back("1"), *read_back("2"))
    assert [line for line in outcome.lines if line.startswith("read")] == [
        "read 205 205 205 205",
        "read 206 206 206 206",
    ]


def test_a_template_becomes_that_of_another_group_of_the_same_shape(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    for key in range(8):
        priority = struct.pack("<i", -1 - key % 3)
        second = scene.add_bias if key % 2 else scene.add
        nodes: list[dict[str, object]] = [
            {"type": KERNEL, "kernel": scene.fill, "attributes": [(8, priority), (9, b"\0\1")]},
            {"type": KERNEL, "kernel": second, "attributes": [(8, priority), (9, b"\0\1")]},
        ]
        first = scene.fill_record(BASE, 10 + key)
        if key % 2:
            scene.file.kernel_record((1, 1, 1), (32, 1, 1), struct.pack("<QI", BASE, 4))
        else:
            scene.add_record(BASE, GRAPH_ARENA)
        scene.add_graph(scene.file.group(nodes, [(0, 1, PLAIN)]), first, str(key))
    reads = [word for key in range(8) for word in read_back(str(key))]
    # Each thread adds the nodes of one template at most: a seventh node would be one that was not shared.
    outcome = run(scene, *START, "alloc:4096", *reads, FOUNDRY_SIM_FAIL="cuGraphAddKernelNode_v2:7")
    found = [line.split()[1] for line in outcome.lines if line.startswith("read")]
    assert found == ["110", "11", "112", "13", "114", "15", "116", "17"]


def test_created_contexts_and_modules(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels, api=MODULE, context=0)
    scene.add_pair("1", 5)
    outcome = run(scene, "init", "context", "find:decode:1", "wait:decode:1", "create", "alloc:4096", *read_back("1"))
    assert outcome.lines[1] == "wait -1 context 0 of device 0 has not been created"
    assert outcome.last("read") == "read 105 105 105 105"


def test_destroyed_context_takes_its_graphs_along(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels, api=MODULE, context=0)
    scene.add_pair("1", 5)
    outcome = run(scene, "init", "context", "create", "alloc:4096", "wait:decode:1", "destroy:1", "find:decode:1")
    assert outcome.lines[1:] == ["wait 0", "not found: its context was destroyed"]


def test_kernels_outside_graphs_are_loaded_ahead(run: Run, kernels: bytes, kernels_file: Path) -> None:
    scene = Scene(kernels)
    outcome = run(
        scene,
        *START,
        "sleep:100",
        f"library:{kernels_file}",
        "attribute:0:fill:8",
        "unload:0",
        "counter:images_handed_over",
    )
    assert outcome.last("images_handed_over") == "images_handed_over 1"
    assert "unloaded" in outcome.lines
