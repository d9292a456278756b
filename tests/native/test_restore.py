"""The restore engine in a program: images by hand, the simulator underneath, answers through the C interface."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.native_build import sanitized
from native.restore_build import Outcome
from native.restore_scene import (
    BASE,
    CHILD,
    COPY,
    EMPTY,
    GRAPH_ARENA,
    KERNEL,
    PLAIN,
    RECORD,
    SET,
    START,
    WAIT,
    Scene,
    copy_record,
    read_back,
)

from foundry import native
from foundry.image import build
from foundry.pack import pack
from foundry.spool import restore_reports

Run = Callable[..., Outcome]


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


def test_the_reason_of_an_earlier_call_is_none_for_the_mode(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "alloc:4096", "find:decode:2", "mode")
    assert outcome.lines[1:] == ["not found: the archive has no graph `2` of `decode`", "mode 2 "]


def test_a_program_can_ask_which_graphs_of_a_set_there_are(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    for key in ("8", "1"):
        scene.add_pair(key, 5)
    scene.add_pair("unfit", 5, restorable=0, reason="it has a host function")
    scene.add_pair("2", 5, set="prefill")
    outcome = run(scene, "list:decode", *START, "alloc:4096", "list:decode", "list:prefill", "list:none")
    assert outcome.lines[0] == "list; the hook is not armed"
    assert outcome.lines[2:] == ["list 8 1; ", "list 2; ", "list; "]


def test_a_restore_says_when_it_asked_got_and_built(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    for key in ("1", "2"):
        scene.add_pair(key, 5)
    outcome = run(scene, *START, "alloc:4096", *read_back("1"), *read_back("2"), "commit")
    (report,) = restore_reports(outcome.spool)
    names = ["driver_begin", "driver_end", "first_context", "first_asked", "first_handed", "commit"]
    times = [report.moments[f"at_{name}_ns"] for name in names]
    assert times == sorted(times) and len(set(times)) == len(times)
    assert report.moments["at_first_context_ns"] < report.moments["at_last_built_ns"] < report.moments["at_commit_ns"]
    assert not {"at_first_capture_ns", "at_first_graph_ns"} & set(report.moments)


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


def scene_of_two_graphs_with_one_event(kernels: bytes) -> Scene:
    """`1` sets memory and records an event; `2`, in a child graph, waits for it."""
    scene = Scene(kernels)
    file = scene.file
    recording = file.group([{"type": SET}, {"type": RECORD}], [(0, 1, PLAIN)])
    waiting = file.group([{"type": CHILD, "child": file.group([{"type": WAIT}], [])}], [])
    event = file.add("events", "I", 0)
    first = file.memset_record(BASE, 5, 4)
    file.event_record(event)
    scene.add_graph(recording, first, "1")
    child = file.event_record(event)
    scene.add_graph(waiting, file.child_record(child), "2")
    scene.add_pair("3", 1)
    return scene


def test_graphs_that_share_an_event_come_back_together(run: Run, kernels: bytes) -> None:
    scene = scene_of_two_graphs_with_one_event(kernels)
    outcome = run(scene, *START, "alloc:4096", "wait:decode:2", "launch:decode:2", *read_back("1"))
    assert outcome.last("read") == "read 5 5 5 5"


@pytest.mark.parametrize(("given_up", "other"), [("1", "2"), ("2", "1")])
def test_a_graph_that_is_given_up_takes_those_along_that_share_its_events(
    run: Run, kernels: bytes, given_up: str, other: str
) -> None:
    scene = scene_of_two_graphs_with_one_event(kernels)
    commands = [f"give-up:decode:{given_up}:why", f"wait:decode:{other}", "wait:decode:3"]
    outcome = run(scene, *START, "alloc:4096", *commands)
    reason = f"graph `decode` `{given_up}`, which uses the same event, is not restored: why"
    refused, untied = (line for line in outcome.lines if line.startswith("wait"))
    assert refused == f"wait -1 {reason}"
    assert untied.startswith("wait 0")


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
    assert outcome.lines[0] == (
        f"{missing}; the program has made 0 of 1 allocations and frees; missing is entry 0: "
        f"an allocation at {BASE:#x} of 4096 bytes by thread 0"
    )
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
        ("cuGraphAddKernelNode_v2:2", "cuGraphAddKernelNode: CUDA_ERROR"),
        ("cuGraphAddDependencies:1", "cuGraphAddDependencies: CUDA_ERROR"),
        ("cuGraphCreate:1", "cuGraphCreate: CUDA_ERROR"),
        ("cuGraphKernelNodeSetParams_v2:1", "node 0: cuGraphKernelNodeSetParams: CUDA_ERROR"),
        ("cuGraphGetEdges_v2:1", "cuGraphGetEdges: CUDA_ERROR"),
    ],
)
def test_driver_error_while_building_gives_up_that_graph_only(
    run: Run, kernels: bytes, failure: str, reason: str
) -> None:
    scene = Scene(kernels)
    for key in range(1, 6):
        scene.add_pair(str(key), key)
    reads = [command for key in range(1, 6) for command in read_back(str(key))]
    outcome = run(scene, *START, "built:4", "alloc:4096", *reads, "commit", FOUNDRY_SIM_FAIL=failure)
    waits = [line for line in outcome.lines if line.startswith("wait")]
    (refused,) = (at for at, line in enumerate(waits) if line != "wait 0")
    assert reason in waits[refused]
    good = [outcome.lines[at + 2] for at, line in enumerate(outcome.lines) if line == "wait 0"]
    assert good == ["read" + f" {100 + key}" * 4 for key in range(1, 6) if key != refused + 1]
    assert "4 graphs restored" in outcome.errors
    assert "given up: 1 (" in outcome.errors


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("cuLibraryLoadData:1", "image `a test image`: cuLibraryLoadData: CUDA_ERROR"),
        ("cuLibraryGetKernel:1", "`: cuLibraryGetKernel: CUDA_ERROR"),
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
    assert outcome.lines[1].startswith("wait -1 ")
    assert outcome.lines[2].startswith("not found: ")
    assert reason in outcome.lines[2]


def test_unrestorable_graph_says_why(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5, restorable=0, reason="node 3 is a host function")
    outcome = run(scene, *START, "find:decode:1", "find:decode:2", "commit")
    assert outcome.lines[:2] == [
        "not found: node 3 is a host function",
        "not found: the archive has no graph `2` of `decode`",
    ]
    assert "given up: 1 (node 3 is a host function)" in outcome.errors


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


def test_what_a_program_captures_is_restored_in_the_next(run: Run, tmp_path: Path, kernels_file: Path) -> None:
    first = 0x403500000000  # where a capture places the first allocation
    start = [*START, "alloc:4096", f"library:{kernels_file}"]
    captured = run(
        None,
        *start,
        f"record:decode:1:{first}:5",
        f"record:decode:2:{first}:7",
        f"read:{first}:4",
        "commit",
        FOUNDRY_MODE="capture",
    )
    assert captured.lines[2:] == ["begin 0", "end 0", "begin 0", "end 0", "read 107 107 107 107", "commit 0"]
    capture, findings = pack(captured.spool)
    assert findings == []
    build(capture, "program-0", tmp_path / "program-0.image", "00" * 32)

    def again(key: str) -> list[str]:
        return [f"wait:decode:{key}", f"launch:decode:{key}", "sync", f"read:{first}:4"]

    restored = run(None, *start, "find:decode:1", *again("1"), *again("2"), "commit", FOUNDRY_SIM_SEED="8")
    assert restored.lines[2] == "found recorded"
    assert [line for line in restored.lines if line.startswith("read")] == [
        "read 105 105 105 105",
        "read 107 107 107 107",
    ]
    assert restored.errors.startswith("foundry: 2 graphs restored")


@pytest.mark.skipif(sanitized(), reason="an instrumented library needs its runtime first")
def test_rows_of_the_list_are_told() -> None:
    rows = native.Hook().table()
    assert rows[0] == ["init", "cuInit", "2000", "record", "own"]
    assert all(len(row) == 5 for row in rows)
    assert len({row[1] for row in rows}) == len(rows) > 300


def test_the_first_difference_is_told_with_what_it_is_near(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.file.log(BASE + 4096, 2048, thread=3, where="after graph `decode` `16`")
    late = scene.file.allocation(BASE + 4096, 2048)
    scene.add_pair("1", 5, references=(late,))
    was = f"captured an allocation at {BASE + 4096:#x} of 2048 bytes by thread 3, now"
    where = "the allocation log differs at entry 1 (after graph `decode` `16`)"
    for commands, now in (
        (["alloc:2560"], f"an allocation at {BASE + 4096:#x} of 2560 bytes by thread 0"),  # another size
        ([f"free:{BASE}"], f"a free of {BASE:#x} by thread 0"),  # too little
        (["alloc:512", "alloc:2048"], f"an allocation at {BASE + 4096:#x} of 512 bytes by thread 0"),  # too much
    ):
        outcome = run(scene, *START, "alloc:4096", *commands, "wait:decode:1")
        assert f"; {where}: {was} {now}" in outcome.last("wait")


def test_an_allocation_in_another_arena_is_told(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "scratch-begin", "alloc:4096", "scratch-end", "wait:decode:1")
    assert outcome.last("wait").endswith(
        f"missing is entry 0: an allocation at {BASE:#x} of 4096 bytes by thread 0; "
        "one of that size was made in the scratch arena, in a phase that a restore skips, by thread 0"
    )


def test_where_several_threads_allocate_all_before_must_be_as_it_was(run: Run, kernels: bytes) -> None:
    for entries, end in ((0, "wait 0"), (2, "wait -1 several threads allocate, and not in the order of the capture")):
        scene = Scene(kernels)
        scene.file.log(BASE + 4096, 512, thread=1)
        scene.file.log(BASE + (2 << 20), 4 << 20)
        large = scene.file.allocation(BASE + (2 << 20), 4 << 20, entries=entries and 3)
        scene.add_pair("1", 5, references=(large,))
        outcome = run(scene, *START, "alloc:4096", "alloc:1024", f"alloc:{4 << 20}", "wait:decode:1")
        assert outcome.last("wait").startswith(end)
    assert "so that the memory at" in outcome.last("wait")
    assert "the allocation log differs at entry 1: " in outcome.last("wait")
