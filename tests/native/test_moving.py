"""A restore whose address range is taken: proven graphs are used elsewhere, the others are given up."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from native.restore_build import Outcome
from native.restore_image_file import SECTIONS
from native.restore_scene import (
    ARENA,
    BASE,
    COPY,
    GRAPH_ARENA,
    PLAIN,
    SET,
    START,
    Scene,
    copy_record,
    read_back,
)

from foundry.pack import pack
from foundry.spool import restore_reports

Run = Callable[..., Outcome]
TAKEN = {"FOUNDRY_SIM_FAIL": "cuMemAddressReserve:1"}
"""The first try to reserve a range fails, as if something of the program's lay there."""
OTHER = 0x403500000000
"""The first of the places that the hook tries."""
DISTANCE = OTHER - BASE


def pair(scene: Scene, key: str, value: int, *, metadata: str = "", moves: int = 1, **graph: object) -> None:
    """Add the graph of `Scene.add_pair`, its three addresses and those in its metadata said to move."""
    file = scene.file
    first = len(file.parts["parameter_bytes"])
    first += -first % 16
    index = scene.add_pair(key, value, metadata=metadata, moves=moves, **graph)
    scene.places += [("parameter_bytes", first), ("parameter_bytes", first + 16), ("parameter_bytes", first + 24)]
    (offset,) = struct.unpack_from("<I", file.parts["graphs"], index * 64 + 12)
    for word in (BASE, GRAPH_ARENA):
        at = metadata.find(str(word))
        if at >= 0:
            scene.places.append(("strings", offset + len(metadata[:at].encode())))


def finished(scene: Scene) -> Scene:
    """Put the places of addresses into the image, in their order."""
    numbers = {name: number for number, (name, _) in enumerate(SECTIONS)}
    for section, offset in sorted(scene.places, key=lambda place: (numbers[place[0]], place[1])):
        scene.file.move(section, offset)
    return scene


@pytest.fixture
def scene(kernels: bytes) -> Scene:
    return Scene(kernels)


def moved_back(key: str) -> list[str]:
    return [command.replace(str(BASE), str(OTHER)) for command in read_back(key)]


def test_proven_graphs_compute_the_same_elsewhere(run: Run, scene: Scene) -> None:
    pair(scene, "1", 5)
    pair(scene, "2", 7)
    commands = [*START, "alloc:4096", "mode", *moved_back("1"), *moved_back("2"), *moved_back("1"), "commit"]
    outcome = run(finished(scene), *commands, **TAKEN)
    assert outcome.lines == [
        f"alloc {OTHER:#x}",
        "mode 2 ",
        *("wait 0", "launch 0", "read 105 105 105 105"),
        *("wait 0", "launch 0", "read 107 107 107 107"),
        *("wait 0", "launch 0", "read 105 105 105 105"),
        "commit 0",
    ]
    assert "2 graphs restored, 0 warm-ups and 0 captures skipped, ready in 0." in outcome.errors
    assert " s, at other addresses" in outcome.errors
    assert "disarmed" not in outcome.status
    (report,) = restore_reports(outcome.spool)
    assert report.counters["ranges_moved"] == 1
    findings = {finding.code: finding.text for finding in pack(outcome.spool)[1]}
    assert findings["range-moved"] == (
        f"device 0: the memory at {BASE:#x} is not free in this process; the graphs are used at {OTHER:#x}"
    )
    assert "range-taken" not in findings


def test_without_need_nothing_is_moved(run: Run, scene: Scene) -> None:
    pair(scene, "1", 5)
    outcome = run(finished(scene), *START, "alloc:4096", *read_back("1"), "commit")
    assert outcome.lines[:4] == [f"alloc {BASE:#x}", "wait 0", "launch 0", "read 105 105 105 105"]
    assert "at other addresses" not in outcome.errors


def test_graphs_without_proof_are_given_up_elsewhere(run: Run, scene: Scene) -> None:
    pair(scene, "1", 5)
    pair(scene, "2", 7, moves=0)
    commands = [*START, "alloc:4096", "find:decode:2", "wait:decode:2", *moved_back("1"), "commit"]
    outcome = run(finished(scene), *commands, **TAKEN)
    reason = "its memory is not free in this process, and there is no proof that it may lie elsewhere"
    assert outcome.lines == [
        f"alloc {OTHER:#x}",
        f"not found: {reason}",
        f"wait -1 {reason}",
        *("wait 0", "launch 0", "read 105 105 105 105"),
        "commit 0",
    ]
    assert f"given up: 1 ({reason})" in outcome.errors


def test_an_archive_without_proof_disarms(run: Run, scene: Scene) -> None:
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "mode", "alloc:4096", **TAKEN)
    assert outcome.lines[0] == (
        f"mode 0 range taken: device 0 wants {BASE:#x}, got none; the archive does not prove that its graphs may lie "
        "elsewhere (`foundry capture --prove` does)"
    )
    assert outcome.lines[1].startswith("alloc 0x")


def test_with_no_range_at_all_it_disarms(run: Run, scene: Scene) -> None:
    pair(scene, "1", 5)
    failures = ",".join(f"cuMemAddressReserve:{nth}" for nth in range(1, 7))
    outcome = run(finished(scene), *START, "mode", FOUNDRY_SIM_FAIL=failures)
    assert outcome.lines == [f"mode 0 range taken: device 0 wants {BASE:#x}, got none there or elsewhere"]


def test_memory_of_the_program_is_compared_where_it_is_now(run: Run, scene: Scene) -> None:
    pair(scene, "1", 5)
    outcome = run(finished(scene), *START, "wait:decode:1", "alloc:512", "wait:decode:1", **TAKEN)
    assert outcome.lines[0].startswith(f"wait -1 the allocation at {OTHER:#x} of 4096 bytes was not made")
    assert outcome.lines[2].startswith(
        f"wait -1 the allocation at {OTHER:#x} of 4096 bytes is now at {OTHER:#x} of 512 bytes; the allocation log "
        f"differs at entry 0: captured an allocation at {OTHER:#x}"
    )


def test_metadata_names_the_memory_where_it_is_now(run: Run, scene: Scene) -> None:
    text = f'{{"größe": [{BASE}, {BASE}5, "x"], "graph": {GRAPH_ARENA}}}'
    pair(scene, "1", 5, metadata=text)
    pair(scene, "2", 7, metadata="none")
    finished(scene)
    expected = text.replace(f"[{BASE},", f"[{OTHER},").replace(str(GRAPH_ARENA), str(GRAPH_ARENA + DISTANCE))
    commands = [*START, "alloc:4096", "find:decode:1", "find:decode:2"]
    assert run(scene, *commands, **TAKEN).lines[1:] == [f"found {expected}", "found none"]
    assert run(scene, *commands).lines[1:] == [f"found {text}", "found none"]


def test_memsets_and_copies_move(run: Run, scene: Scene) -> None:
    file = scene.file
    group = file.group([{"type": SET}, {"type": COPY}], [(0, 1, PLAIN)])
    first = file.memset_record(GRAPH_ARENA + 1024, 42, 4)
    file.memcpy_record(copy_record(BASE, GRAPH_ARENA + 1024, 16))
    scene.add_graph(group, first, "1", moves=1)
    scene.places += [("records", first * 64), ("copies", 48), ("copies", 136)]
    outcome = run(finished(scene), *START, "alloc:4096", *moved_back("1"), **TAKEN)
    assert outcome.lines[-1] == "read 42 42 42 42"


@pytest.mark.parametrize("shift", [1, 3, 4, 7])
def test_an_address_at_any_byte_of_a_block_moves(run: Run, kernels: bytes, shift: int) -> None:
    scene = Scene(kernels)
    file = scene.file
    packed = file.kernel(scene.image, "add_bias", [(0, 8), (8, 4), (12, 20)])
    group = file.group([{"type": 0, "kernel": packed}], [])
    block = bytearray(struct.pack("<QI", BASE, 4) + bytes(20))
    block[12 + shift : 20 + shift] = struct.pack("<Q", GRAPH_ARENA + 8)
    first = file.kernel_record((1, 1, 1), (1, 1, 1), bytes(block))
    scene.add_graph(group, first, "1", moves=1)
    (at,) = struct.unpack_from("<Q", file.parts["records"], first * 64 + 32)
    scene.places += [("parameter_bytes", at), ("parameter_bytes", at + 12 + shift)]
    outcome = run(finished(scene), *START, "alloc:4096", "wait:decode:1", FOUNDRY_RESPOOL="1", **TAKEN)
    # What was built is read back from the driver by the recorder, so the spool has the block as it is now.
    assert outcome.lines[-1] == "wait 0" or "parameter" in outcome.lines[-1]
    block[:8] = struct.pack("<Q", OTHER)
    block[12 + shift : 20 + shift] = struct.pack("<Q", GRAPH_ARENA + 8 + DISTANCE)
    if outcome.lines[-1] == "wait 0":
        (graph,) = pack(outcome.spool)[0].processes[0].graphs
        assert pack(outcome.spool)[0].processes[0].parameters[: len(block)].tobytes() == bytes(block)
        assert graph.key == "1"


def test_each_device_moves_by_itself(run: Run, scene: Scene) -> None:
    second = BASE + (1 << 41)
    scene.file.device(
        ordinal=1,
        name="NVIDIA Simulated H200",
        major=9,
        minor=0,
        processors=132,
        memory=64 << 20,
        base=second,
        arena=ARENA,
    )
    pair(scene, "1", 5, metadata=f"{BASE} {second + 512}")
    offset = scene.places[-1][1]
    finished(scene)
    scene.file.parts["moves"] = bytearray()
    scene.file.move("strings", offset)
    scene.file.move("strings", offset + len(str(BASE)) + 1, device=1)
    for place in scene.places[:3]:
        scene.file.move(*place)
    environment = {"FOUNDRY_SIM_DEVICES": "2", "FOUNDRY_SIM_FAIL": "cuMemAddressReserve:1,cuMemAddressReserve:3"}
    outcome = run(scene, *START, "alloc:4096", "find:decode:1", *moved_back("1"), **environment)
    assert outcome.lines[1] == f"found {OTHER} {second + 512}"
    assert outcome.lines[-1] == "read 105 105 105 105"
