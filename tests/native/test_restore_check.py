"""The check of a restore image: what it refuses, in which words, and that no damage gets through or crashes it."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.native_build import PROGRAMS, SANITIZERS, compile_program
from helpers.source import NATIVE
from native.restore_image_file import ABI, HEADER_SIZE, SECTIONS, ImageFile, crc32c

BASE = 0x400000000000
ARENA = 1 << 40
KERNEL, COPY, SET, CHILD, EMPTY, WAIT, RECORD = 0, 1, 2, 4, 5, 6, 7


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the check by itself, with sanitizers."""
    return compile_program(
        tmp_path_factory.mktemp("check") / "restore_check_program",
        [
            PROGRAMS / "restore_check_program.cpp",
            *(NATIVE / name for name in ("restore/check.cpp", "restore/image.cpp", "hook/crc32c.cpp")),
        ],
        *SANITIZERS,
    )


def full_image() -> ImageFile:
    """Make an image with every kind of entry and node."""
    image = ImageFile()
    image.device(name="Simulated", major=9, minor=0, processors=4, memory=1 << 30, base=BASE, arena=ARENA)
    made = image.allocation(BASE, 4096)
    restored = image.allocation(BASE + 2 * ARENA, 4096, arena=2, restored=1)
    image.log(BASE, 4096)
    image.log(BASE, 0, freed=1)
    blob = image.blob(b"x" * 100)
    image.mapping(BASE + 2 * ARENA, 2 << 20, contents=blob)
    kernel = image.kernel(
        image.image(b"k" * 32, blob, options=((1, 2),)), "add", [(0, 8), (8, 4)], attributes=((8, 0),)
    )
    inner = image.group([{"type": KERNEL, "kernel": kernel}], [])
    nodes: list[dict[str, object]] = [
        {"type": KERNEL, "kernel": kernel, "attributes": [(1, b"a")]},
        *({"type": kind} for kind in (SET, COPY, WAIT, RECORD, EMPTY)),
        {"type": CHILD, "child": inner},
    ]
    plain, other = bytes(8), b"\1" + bytes(7)
    group = image.group(nodes, [(0, 1, plain), (1, 2, plain), (5, 4, other), (6, 0, plain)])
    event = image.add("events", "I", 0)
    child = image.kernel_record((1, 1, 1), (1, 1, 1), bytes(12))
    first = image.kernel_record((1, 1, 1), (1, 1, 1), bytes(12))
    image.memset_record(BASE, 0, 4)
    image.memcpy_record(bytes(200))
    image.event_record(event)
    image.event_record(event)
    image.empty_record()
    image.child_record(child)
    metadata = image.string(f'[{BASE + 512}, "{BASE}"]')
    image.graph(group, first, references=(made, restored), metadata=f'[{BASE + 512}, "{BASE}"]', moves=1)
    struct.pack_into("<I", image.parts["graphs"], 12, metadata)
    first_block = struct.unpack_from("<Q", image.parts["records"], first * 64 + 32)[0]
    struct.pack_into("<Q", image.parts["parameter_bytes"], first_block, BASE + 8)
    struct.pack_into("<Q", image.parts["copies"], 48, BASE + 16)
    image.move("strings", metadata + 1)
    image.move("records", (first + 1) * 64)
    image.move("parameter_bytes", first_block)
    image.move("copies", 48)
    image.graph(0xFFFFFFFF, 0, key="2", restorable=0, reason="a host function")
    return image


def answer(program: Path, *files: Path) -> list[str]:
    """Ask the check about files."""
    done = subprocess.run([str(program), "check", *map(str, files)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_whole_image_is_accepted(program: Path, tmp_path: Path) -> None:
    assert answer(program, full_image().write(tmp_path)) == ["ok"]


def test_every_damaged_byte_and_every_cut_is_refused(program: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(program), "flip", str(full_image().write(tmp_path))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > HEADER_SIZE


@pytest.mark.parametrize("seed", range(4))
def test_damage_under_right_checksums_never_leads_outside_the_file(program: Path, tmp_path: Path, seed: int) -> None:
    path = full_image().write(tmp_path)
    done = subprocess.run(
        [str(program), "fuzz", str(path), str(seed), "10000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    accepted = int(done.stdout.split()[0])
    assert 0 < accepted < 10000


def test_other_files_are_told_apart(program: Path, tmp_path: Path) -> None:
    text, empty, other_abi = tmp_path / "text", tmp_path / "empty", tmp_path / "abi"
    text.write_bytes(b"no image" * 1000)
    empty.write_bytes(b"")
    data = bytearray(full_image().to_bytes())
    data[8] = 77
    other_abi.write_bytes(data)
    lines = answer(program, text, empty, other_abi, tmp_path / "missing", tmp_path)
    assert lines[0].endswith("not a restore image")
    assert lines[1].endswith("0 bytes, too short for a restore image")
    assert lines[2].endswith(f"made for abi 77, this hook has {ABI}")
    assert lines[3].endswith("No such file or directory")
    assert "too short" in lines[4]


def patched(change: Callable[[ImageFile], None]) -> ImageFile:
    image = full_image()
    change(image)
    return image


def word(section: str, entry: int, offset: int, value: int, size: int = 4) -> Callable[[ImageFile], None]:
    """Overwrite a number in an entry of a section."""

    def change(image: ImageFile) -> None:
        start = entry * dict(SECTIONS)[section] + offset
        image.parts[section][start : start + size] = value.to_bytes(size, "little")

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (word("devices", 0, 4, 99999), "devices 0: name outside the strings"),
        (word("devices", 0, 32, BASE + 4096, 8), "devices 0: range not on 2 MiB"),
        (word("devices", 0, 0, 3), "log 0: unknown device"),
        (word("log", 1, 22, 2, 2), "log 1: neither allocation nor free"),
        (word("allocations", 0, 0, BASE - 4096, 8), "allocations 0: outside the range of its device"),
        (word("allocations", 0, 20, 1), "allocations 0: not in its arena"),
        (word("allocations", 1, 8, 4 << 20, 8), "allocations 1: restored, but not in a mapping"),
        (word("mappings", 0, 0, BASE + 4096, 8), "mappings 0: not on 2 MiB"),
        (word("mappings", 0, 0, BASE + 3 * ARENA, 8), "mappings 0: outside the range of its device"),
        (word("mappings", 0, 20, 9), "mappings 0: blob 9 of 1"),
        (word("mappings", 0, 24, (2 << 20) - 99, 8), "mappings 0: contents longer than the mapping"),
        (word("blobs", 0, 8, 101, 8), "blobs 0: outside the blob bytes"),
        (word("images", 0, 32, 5), "images 0: blob 5 of 1"),
        (word("images", 0, 36, 3), "images 0: unknown api"),
        (word("images", 0, 52, 2), "images 0: options out of range"),
        (word("images", 0, 60, 99999), "images 0: provenance outside the strings"),
        (word("images", 0, 56, 1), "images 0: whole image 1 of 1"),
        (word("images", 0, 56, 0), "images 0: not the same load as the whole image"),
        (word("kernels", 0, 0, 8), "kernels 0: image 8 of 1"),
        (word("kernels", 0, 4, 0), "kernels 0: no name"),
        (word("kernels", 0, 12, 3), "kernels 0: parameters out of range"),
        (word("kernels", 0, 24, 16), "kernels 0: last parameter ends at 12 of 16"),
        (word("parameters", 1, 0, 4), "kernels 0: parameters overlap or are empty"),
        (word("groups", 1, 4, 99), "groups 1: nodes out of range"),
        (word("edges", 0, 4, 99), "groups 1: an edge to no node"),
        (word("edges", 0, 8, 9, 1), "groups 1: edges not in order"),
        (word("nodes", 0, 4, 7), "nodes 0: type, kernel, child group or attributes out of range"),
        (word("nodes", 0, 0, 3), "nodes 0: type, kernel, child group or attributes out of range"),
        (word("nodes", 7, 16, 1), "groups 1: child graphs in a circle or too deep"),
        (word("graphs", 0, 0, 9), "graphs 0: group 9 of 2"),
        (word("graphs", 0, 12, 99999), "graphs 0: a string outside the strings"),
        (word("graphs", 0, 16, 5, 8), "graphs 0: a record out of range, or not as its node says"),
        (word("records", 0, 28, 13), "graphs 0: a record out of range, or not as its node says"),
        (word("records", 1, 32, 8, 8), "graphs 0: a record out of range, or not as its node says"),
        (word("records", 3, 0, 1), "graphs 0: a record out of range, or not as its node says"),
        (word("records", 4, 0, 1), "graphs 0: a record out of range, or not as its node says"),
        (word("records", 7, 0, 9, 8), "graphs 0: a record out of range, or not as its node says"),
        (word("references", 1, 0, 2), "references: allocation 2 of 2"),
        (word("graphs", 0, 60, 2), "graphs 0: neither proven to move nor not"),
        (word("graphs", 1, 60, 1), "graphs 1: neither proven to move nor not"),
        (word("moves", 0, 8, 5), "moves 0: in a section without addresses"),
        (word("moves", 2, 0, 1 << 40, 8), "moves 2: outside its section"),
        (word("moves", 1, 0, 0, 8), "moves 1: not the destination of a memset"),
        (word("moves", 1, 0, 2 * 64 + 8, 8), "moves 1: not the destination of a memset"),
        (word("moves", 1, 0, 3 * 64, 8), "moves 1: not the destination of a memset"),
        (word("moves", 0, 12, 1), "moves 0: unknown device, or one without a range"),
        (word("moves", 2, 0, 3, 8), "moves 2: no address in the range of its device"),
        (word("moves", 0, 0, 1, 8), "moves 0: not where a number begins"),
        (word("copies", 0, 48, BASE + 3 * ARENA, 8), "moves 3: no address in the range of its device"),
        (word("moves", 3, 8, 17), "moves 3: not above the one before it"),
        (word("strings", len(full_image().parts["strings"]) - 1, 0, 65, 1), "section strings: not terminated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_contradictions_are_named(
    program: Path, tmp_path: Path, change: Callable[[ImageFile], None], reason: str
) -> None:
    path = patched(change).write(tmp_path)
    assert answer(program, path) == [f"`{path}`: {reason}"]


def twice_loaded(**other: object) -> ImageFile:
    """Make an image with a kernel image and one that has fewer kernels, for the same load but for what is said."""
    image = ImageFile()
    for ordinal in (0, 1):
        image.device(ordinal=ordinal, name="", major=9, minor=0, processors=4, memory=1 << 30, base=BASE, arena=ARENA)
    blob = image.blob(b"x" * 100)
    image.image(b"k" * 32, blob, api=1)
    image.image(**{"key": b"k" * 32, "blob": blob, "api": 1, "whole": 0, **other})  # type: ignore[arg-type]
    return image


def test_an_image_with_fewer_kernels_is_of_the_same_load_as_the_whole_one(program: Path, tmp_path: Path) -> None:
    assert answer(program, twice_loaded().write(tmp_path)) == ["ok"]
    differing = ({"key": b"l" * 32}, {"api": 2}, {"instance": 1}, {"device": 1}, {"options": ((1, 2),)}, {"whole": 1})
    for other in differing:
        (line,) = answer(program, twice_loaded(**other).write(tmp_path))
        assert line.endswith("images 1: not the same load as the whole image"), other


def test_circle_of_edges_is_refused(program: Path, tmp_path: Path) -> None:
    image = ImageFile()
    image.group([{"type": EMPTY}, {"type": EMPTY}], [(0, 1, bytes(8)), (1, 0, bytes(8))])
    assert answer(program, image.write(tmp_path))[0].endswith("groups 0: edges run in a circle")


def test_edges_against_the_node_order_are_accepted(program: Path, tmp_path: Path) -> None:
    image = ImageFile()
    image.group([{"type": EMPTY}, {"type": EMPTY}, {"type": EMPTY}], [(2, 1, bytes(8)), (1, 0, bytes(8))])
    assert answer(program, image.write(tmp_path)) == ["ok"]


@pytest.mark.parametrize(
    ("edges", "fault"),
    [
        ([(0, 1), (1, 3), (0, 3), (2, 3)], ""),
        ([(1, 3), (0, 3), (0, 1)], "edges not in order"),
        ([(0, 1), (1, 3), (0, 3), (1, 3)], "edges not in order"),
    ],
)
def test_edges_may_be_in_the_order_of_dependencies(
    program: Path, tmp_path: Path, edges: list[tuple[int, int]], fault: str
) -> None:
    image = ImageFile()
    image.group([{"type": EMPTY}] * 4, [(*edge, bytes(8)) for edge in edges], as_given=True)
    (line,) = answer(program, image.write(tmp_path))
    assert line.endswith(fault or "ok")


def test_doubling_child_graphs_do_not_take_for_ever(program: Path, tmp_path: Path) -> None:
    image = ImageFile()
    image.device(name="Simulated", major=9, minor=0, processors=4, memory=1 << 30, base=BASE, arena=ARENA)
    many = 64
    below = image.group([{"type": EMPTY}], [])
    record = image.empty_record()
    for _ in range(15):
        below = image.group([{"type": CHILD, "child": below}] * many, [])
        first = image.child_record(record)
        for _ in range(many - 1):
            image.child_record(record)
        record = first
    image.graph(below, record)
    assert answer(program, image.write(tmp_path))[0].endswith("refers to the same entries too often")


def test_checksum_of_the_writer_is_the_standard_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283
