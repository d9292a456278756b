"""The restore engine in a program: images by hand, the simulator underneath, answers through the C interface."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from native.restore_build import HERE, Outcome, compile_program, make_kernels, run_restored
from native.restore_scene import (
    BASE,
    CHILD,
    COPY,
    EMPTY,
    GRAPH_ARENA,
    KERNEL,
    MEMORY,
    MODULE,
    PLAIN,
    RECORD,
    SET,
    START,
    WAIT,
    Scene,
    copy_record,
)

Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("program") / "program", [HERE / "restore_program.cpp"])


@pytest.fixture(scope="session")
def kernels_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "kernels.image"
    make_kernels(path, HERE / "restore_kernels.c")
    return path


@pytest.fixture
def kernels(kernels_file: Path) -> bytes:
    return kernels_file.read_bytes()


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    def run_scene(scene: Scene | None, *commands: str, **environment: str) -> Outcome:
        if scene is not None:
            scene.file.write(tmp_path)
        return run_restored(program, tmp_path, list(commands), **{"FOUNDRY_SIM_MEMORY": str(MEMORY), **environment})

    return run_scene


def read_back(key: str) -> list[str]:
    return [f"wait:decode:{key}", f"launch:decode:{key}", "sync", f"read:{BASE}:4"]


def frames(outcome: Outcome) -> list[tuple[int, bytes]]:
    """Read the spool's frames as (kind, payload)."""
    data = (outcome.spool / "program-0" / "events").read_bytes()
    found, at = [], 0
    while at < len(data):
        kind, _, _, length = struct.unpack_from("<HHIQ", data, at)
        found.append((kind, data[at + 16 : at + 16 + length]))
        at += 16 + length
    return found


def strings(payload: bytes, count: int) -> list[str]:
    found, at = [], 0
    for _ in range(count):
        (length,) = struct.unpack_from("<I", payload, at)
        found.append(payload[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return found


def test_restored_graphs_compute_what_they_computed(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5, metadata='{"batch": 1}', first_use=1)
    scene.add_pair("2", 7, first_use=0)
    outcome = run(
        scene,
        *START,
        "alloc:4096",
        "mode",
        "find:decode:1",
        *read_back("1"),
        *read_back("2"),
        *read_back("1"),
        "commit",
    )
    assert outcome.lines == [
        f"alloc {BASE:#x}",
        "mode 2 ",
        'found {"batch": 1}',
        *("wait 0", "launch 0", "read 105 105 105 105"),
        *("wait 0", "launch 0", "read 107 107 107 107"),
        *("wait 0", "launch 0", "read 105 105 105 105"),
        "commit 0",
    ]
    assert outcome.errors.startswith("foundry: 2 graphs restored, 0 warm-ups and 0 captures skipped, ready in 0.")
    assert outcome.errors.count("\n") == 1
    told = [payload for kind, payload in frames(outcome) if kind == 60]
    assert [strings(payload, 2) for payload in told] == [["decode", "1"], ["decode", "2"]]
    assert [payload[4 + 6 + 4 + 1] for payload in told] == [1, 1]
    assert [kind for kind, _ in frames(outcome)].count(61) >= 1


def test_quiet_prints_nothing_and_counts_are_told(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    commands = [
        *START,
        "alloc:4096",
        "count:captures_skipped:1",
        *read_back("1"),
        "counter:graphs_restored",
        "counter:graph_waits",
    ]
    outcome = run(scene, *commands, "commit", FOUNDRY_QUIET="1")
    assert outcome.errors == ""
    assert "graphs_restored 1" in outcome.lines
    assert "graph_waits 1" in outcome.lines
    loud = run(scene, *commands)
    assert "1 graph restored, 0 warm-ups and 1 capture skipped" in loud.errors


def test_every_node_kind_comes_back(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    file = scene.file
    inner = file.group([{"type": KERNEL, "kernel": scene.add}], [])
    kinds: list[dict[str, object]] = [
        {"type": SET},
        {"type": RECORD},
        {"type": WAIT},
        {"type": COPY},
        {"type": EMPTY},
        {"type": CHILD, "child": inner},
    ]
    # set, record, wait in a row; the copy after both the wait and the set; the child last.
    edges = [(0, 1, PLAIN), (1, 2, PLAIN), (2, 3, PLAIN), (0, 3, PLAIN), (3, 4, PLAIN), (4, 5, PLAIN)]
    group = file.group(kinds, edges)
    event = file.add("events", "I", 0)
    for key, value in (("1", 3), ("2", 4)):
        child = scene.add_record(BASE, GRAPH_ARENA)
        first = file.memset_record(BASE + 1024, value, 4)
        file.event_record(event)
        file.event_record(event)
        file.memcpy_record(copy_record(BASE, BASE + 1024, 16))
        file.empty_record()
        file.child_record(child)
        scene.add_graph(group, first, key)
    outcome = run(scene, *START, "alloc:4096", *read_back("1"), *read_back("2"))
    assert [line for line in outcome.lines if line.startswith("read")] == [
        "read 103 103 103 103",
        "read 104 104 104 104",
    ]


def test_members_of_a_group_with_memory_nodes_are_rewritten(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    group = scene.file.group([{"type": SET}, {"type": COPY}], [(0, 1, PLAIN)])
    for key in ("1", "2", "3"):
        first = scene.file.memset_record(BASE + 256 * int(key), 10 + int(key), 4)
        scene.file.memcpy_record(copy_record(BASE, BASE + 256 * int(key), 16))
        scene.add_graph(group, first, key)
    outcome = run(scene, *START, "alloc:4096", *read_back("1"), *read_back("2"), *read_back("3"))
    assert [line for line in outcome.lines if line.startswith("read")] == [
        f"read {value} {value} {value} {value}" for value in (11, 12, 13)
    ]


def test_background_builds_all_and_waits_for_memory_that_nodes_name(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    first = scene.file.memset_record(BASE, 9, 4)
    scene.add_graph(scene.file.group([{"type": SET}], []), first, "set")
    outcome = run(
        scene,
        *START,
        "built:1",
        "counter:graphs_built",
        "alloc:4096",
        "built:2",
        "counter:graphs_built",
        *read_back("set"),
    )
    assert outcome.lines[0] == "graphs_built 1"
    assert outcome.lines[2] == "graphs_built 2"
    assert outcome.last("read") == "read 9 9 9 9"


def test_asking_first_builds_at_once(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    for key in range(40):
        scene.add_pair(str(key), key, first_use=key)
    keys = ":".join(str(39 - key) for key in range(40))
    outcome = run(
        scene,
        *START,
        "alloc:4096",
        f"threads:40:decode:{keys}",
        *read_back("39"),
        *read_back("0"),
        "counter:graphs_built",
    )
    assert outcome.lines[1] == "threads" + " 0" * 40
    assert "read 139 139 139 139" in outcome.lines
    assert "read 100 100 100 100" in outcome.lines
    assert outcome.last("graphs_built") == "graphs_built 40"


def test_missing_allocation_is_named_until_it_is_there(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "wait:decode:1", "alloc:4096", *read_back("1"))
    missing = f"wait -1 the allocation at {BASE:#x} of 4096 bytes was not made"
    assert outcome.lines[0] == f"{missing}; the program has made 0 of 1 allocations and frees"
    assert outcome.last("read") == "read 105 105 105 105"


def test_other_size_gives_the_graph_up_with_the_first_log_difference(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "alloc:512", "wait:decode:1", "commit")
    assert outcome.lines[1] == (
        f"wait -1 the allocation at {BASE:#x} of 4096 bytes is now at {BASE:#x} of 512 bytes; "
        f"the allocation log differs at entry 0: captured an allocation at {BASE:#x} of 4096 bytes by thread 0, "
        f"now an allocation at {BASE:#x} of 512 bytes by thread 0"
    )
    assert "0 graphs restored" in outcome.errors
    assert "given up: 1 (the allocation at" in outcome.errors


def test_freed_allocation_is_not_there(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.file.log(BASE, 0, freed=1)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "alloc:4096", "wait:decode:1", f"free:{BASE}", "wait:decode:1")
    assert outcome.lines[1] == "wait 0"
    assert outcome.lines[2] == f"wait -1 the allocation at {BASE:#x} of 4096 bytes was not made"


@pytest.mark.parametrize(
    ("device", "environment", "reason"),
    [
        ({"name": "NVIDIA H100"}, {}, "device 0: captured on `NVIDIA H100`, this is `NVIDIA Simulated H200`"),
        ({"processors": 66}, {}, "device 0: multiprocessors: captured with 66, this one has 132"),
        ({"major": 8}, {}, "device 0: compute capability: captured with 8, this one has 9"),
        ({}, {"FOUNDRY_SIM_VERSION": "12080"}, "driver: captured with CUDA 13000, this one has 12080"),
        ({}, {"FOUNDRY_SIM_FAIL": "cuMemAddressReserve:1"}, f"range taken: device 0 wants {BASE:#x}, got 0x0"),
    ],
)
def test_what_does_not_fit_disarms_and_the_program_runs(
    run: Run, kernels: bytes, device: dict[str, object], environment: dict[str, str], reason: str
) -> None:
    scene = Scene(kernels, **device)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "mode", "find:decode:1", "alloc:4096", **environment)
    assert outcome.lines[:2] == [f"mode 0 {reason}", f"not found: {reason}"]
    assert outcome.lines[2].startswith("alloc 0x")
    assert f"program-0 disarmed {reason}" in outcome.status.splitlines()


def test_archive_of_a_real_driver_is_not_used_on_the_simulator(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.file.simulated = 0
    outcome = run(scene, *START, "mode")
    assert outcome.lines == ["mode 0 captured on a real driver, but this is the simulator"]


def test_damaged_or_missing_image_disarms(run: Run, kernels: bytes, tmp_path: Path) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    data = bytearray(scene.file.to_bytes())
    data[data.index(b"decode")] ^= 1
    path = tmp_path / "program-0.image"
    path.write_bytes(data)
    outcome = run(None, *START, "mode", "alloc:4096")
    assert outcome.lines[0] == f"mode 0 `{path}`: section strings: checksum differs"
    path.unlink()
    outcome = run(None, *START, "mode", "alloc:4096")
    assert outcome.lines[0] == f"mode 0 cannot open `{path}`: No such file or directory"


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("cuGraphInstantiateWithFlags:1", "cuGraphInstantiateWithFlags: CUDA_ERROR"),
        ("cuGraphAddKernelNode_v2:2", "node 1: cuGraphAddKernelNode: CUDA_ERROR"),
        ("cuGraphAddDependencies:1", "cuGraphAddDependencies: CUDA_ERROR"),
        ("cuGraphCreate:1", "cuGraphCreate: CUDA_ERROR"),
    ],
)
def test_driver_error_while_building_gives_up_that_graph_only(
    run: Run, kernels: bytes, failure: str, reason: str
) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5, first_use=0)
    scene.add_pair("2", 7, first_use=1)
    outcome = run(
        scene, *START, "built:1", "alloc:4096", "wait:decode:1", *read_back("2"), "commit", FOUNDRY_SIM_FAIL=failure
    )
    assert outcome.lines[1].startswith(f"wait -1 {reason}")
    assert outcome.last("read") == "read 107 107 107 107"
    assert "1 graph restored" in outcome.errors
    assert f"given up: 1 ({reason}" in outcome.errors


def test_rewriting_that_fails_leaves_a_fresh_template_for_the_next(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    for key, value in (("1", 5), ("2", 6), ("3", 7)):
        scene.add_pair(key, value, first_use=int(key))
    outcome = run(
        scene,
        *START,
        "built:2",
        "alloc:4096",
        "wait:decode:2",
        *read_back("1"),
        *read_back("3"),
        FOUNDRY_SIM_FAIL="cuGraphKernelNodeSetParams_v2:1",
    )
    assert outcome.lines[1].startswith("wait -1 node 0: cuGraphKernelNodeSetParams: CUDA_ERROR")
    assert "read 105 105 105 105" in outcome.lines
    assert "read 107 107 107 107" in outcome.lines


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("cuLibraryLoadData:1", "kernel `fill`: image `a test image`: cuLibraryLoadData: CUDA_ERROR"),
        ("cuLibraryGetKernel:1", "kernel `fill`: cuLibraryGetKernel: CUDA_ERROR"),
        ("cuMemMap:1", "mapping device memory: CUDA_ERROR"),
        ("cuMemcpyHtoDAsync_v2:1", "cuMemcpyHtoDAsync: CUDA_ERROR"),
    ],
)
def test_driver_error_before_building_gives_up_what_needs_it(
    run: Run, kernels: bytes, failure: str, reason: str
) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "sleep:100", "alloc:4096", "wait:decode:1", "find:decode:1", FOUNDRY_SIM_FAIL=failure)
    assert outcome.lines[1].startswith("wait -1 ") or outcome.lines[1].startswith("wait -1")
    assert outcome.lines[2].startswith(f"not found: {reason}"), outcome.lines


def test_unrestorable_graph_says_why(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5, restorable=0, reason="node 3 is a host function")
    outcome = run(scene, *START, "find:decode:1", "find:decode:2", "commit")
    assert outcome.lines[:2] == [
        "not found: node 3 is a host function",
        "not found: the archive has no graph `2` of `decode`",
    ]
    assert "given up: 1 (node 3 is a host function)" in outcome.errors


def test_other_parameter_layout_is_refused(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    wrong = scene.file.kernel(scene.image, "add_bias", [(0, 8), (8, 8)])
    first = scene.file.kernel_record((1, 1, 1), (1, 1, 1), bytes(16))
    scene.add_graph(scene.file.group([{"type": KERNEL, "kernel": wrong}], []), first, "1")
    outcome = run(scene, *START, "sleep:50", "find:decode:1")
    assert outcome.lines == ["not found: kernel `add_bias`: parameter 1 lies at 8 of 4 bytes, captured at 8 of 8"]


def test_kernel_with_more_parameters_is_refused(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    wrong = scene.file.kernel(scene.image, "fill", [(0, 8), (8, 4)])
    first = scene.file.kernel_record((1, 1, 1), (1, 1, 1), bytes(12))
    scene.add_graph(scene.file.group([{"type": KERNEL, "kernel": wrong}], []), first, "1")
    outcome = run(scene, *START, "sleep:50", "find:decode:1")
    assert outcome.lines == ["not found: kernel `fill`: it takes more than the 2 parameters of the capture"]


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


def test_forked_child_restores_nothing(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "alloc:4096", "fork", *read_back("1"))
    assert outcome.lines[1:3] == ["child mode 0", "child found nothing"]
    assert outcome.last("read") == "read 105 105 105 105"


def test_exit_does_not_wait_for_the_background(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    for key in range(300):
        scene.add_pair(str(key), key)
    for commands in (START, [*START, "alloc:4096"], ["init"], []):
        assert run(scene, *commands).errors == ""


def test_misuse_is_answered(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    graphs = ["exec:decode:1", "exec:decode:9"]
    phases = ["scratch-end", "scratch-begin", "scratch-end"]
    labels = ["graph-end:x", "graph-begin:a:b", "graph-begin:a:b", "graph-end:x", "graph-begin::b"]
    outcome = run(scene, *START, "alloc:4096", *graphs, *phases, *labels)
    assert outcome.lines[1:] == [
        "no exec: foundry_graph_wait has not answered 0 for this graph",
        "no exec: not a graph of foundry_graph_find",
        *("scratch -2", "scratch 0", "scratch 0"),
        "end -2 this thread has not begun a graph",
        *("begin 0", "begin -2"),
        "end -1 no graph was instantiated for `a` `b`",
        "begin -2",
    ]


def test_program_may_give_a_graph_up(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(
        scene,
        *START,
        "alloc:4096",
        "wait:decode:1",
        "give-up:decode:1:outputs moved",
        "counter:graphs_restored",
        "commit",
    )
    assert outcome.last("graphs_restored") == "graphs_restored 0"
    assert "0 graphs restored" in outcome.errors
    assert "given up: 1 (outputs moved)" in outcome.errors
