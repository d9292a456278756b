"""What differs between an archive and a machine, item by item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from helpers.spool_writer import SpoolWriter, body, memset_node

from foundry.archive.heads import BlobEntry
from foundry.compat import codes, compare, host, probe
from foundry.compat.host import Here
from foundry.compat.items import Item, Level, usable, worst_first
from foundry.model import LibraryPlace, Process
from foundry.pack import pack

BASE = 0x400000000000
GIB = 1 << 30
GPU = probe.Device(0, "NVIDIA H200", "00" * 16, 9, 0, 132, 150 * GIB, True, 0, False)
MACHINE = probe.Machine(version=13000, release="580.1", devices=(GPU,))


@dataclass
class Head:
    context: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    blobs: Sequence[BlobEntry] = ()


@dataclass
class Archive:
    every: list[Process]
    head: Head = field(default_factory=Head)

    def processes(self) -> Iterable[Process]:
        return iter(self.every)


@pytest.fixture
def process(tmp_path: Path) -> Process:
    spool = SpoolWriter(tmp_path)
    spool.driver(simulated=False)
    spool.device(base=BASE, arena_size=300 * GIB)
    spool.context(0x10)
    spool.allocation(BASE, 3 << 20)
    spool.allocation(BASE + (4 << 20), 1 << 20, ordinal=1)
    spool.graph(1, body([memset_node(BASE)]))
    spool.free(BASE)
    spool.allocation(BASE + (8 << 20), 2 << 20, ordinal=2)
    spool.end()
    spool.write()
    capture, _ = pack(tmp_path, context={}, all_kernels=False)
    (found,) = capture.processes
    return replace(found, ranks={})


def here(machine: probe.Machine = MACHINE, **more: object) -> Here:
    return Here(machine, simulated=False, **more)  # type: ignore[arg-type]


def levels(items: Iterable[Item]) -> dict[str, Level]:
    return {item.code: item.level for item in items if item.level is not Level.SAME}


def one(items: Iterable[Item], code: str) -> Item:
    (found,) = [item for item in items if item.code == code]
    return found


def test_the_same_machine_is_the_same_in_everything(process: Process) -> None:
    items = host.examine(Archive([process]), here())
    assert levels(items) == {}
    assert usable(items)
    assert {codes.GPU_MODEL, codes.SIMULATED, codes.NO_GRAPHS, codes.DRIVER, codes.ARENAS, codes.MEMORY} <= {
        item.code for item in items
    }


@pytest.mark.parametrize(
    ("change", "code", "archive", "found"),
    [
        ({"name": "NVIDIA H100"}, codes.GPU_MODEL, "NVIDIA H200", "NVIDIA H100"),
        ({"compute_minor": 3}, codes.COMPUTE, "9.0", "9.3"),
        ({"multiprocessors": 114}, codes.MULTIPROCESSORS, "132", "114"),
        ({"mig": True}, codes.MIG, "no", "yes"),
        ({"virtual_memory": False}, codes.VIRTUAL_MEMORY, "yes", "no"),
        ({"compute_mode": 2}, codes.COMPUTE_MODE, "not recorded", "prohibited"),
    ],
)
def test_another_gpu_is_refused_as_the_hook_would(
    process: Process, change: dict[str, object], code: str, archive: str, found: str
) -> None:
    machine = replace(MACHINE, devices=(replace(GPU, **change),))  # type: ignore[arg-type]
    items = host.examine(Archive([process]), here(machine))
    assert levels(items) == {code: Level.REFUSE}
    item = one(items, code)
    assert (item.archive, item.here, item.where) == (archive, found, "python-0, GPU 0")
    assert not usable(items)


@pytest.mark.parametrize(
    ("version", "level"), [(12080, Level.REFUSE), (13000, Level.SAME), (13010, Level.NOTE), (14000, Level.NOTE)]
)
def test_an_older_driver_is_refused_and_a_newer_one_is_not(process: Process, version: int, level: Level) -> None:
    items = host.examine(Archive([process]), here(replace(MACHINE, version=version)))
    assert one(items, codes.DRIVER).level is level


def test_without_a_driver_all_of_it_is_unknown(process: Process) -> None:
    machine = probe.Machine(fault="no libcuda")
    items = host.examine(Archive([process]), here(machine))
    assert levels(items) == {
        codes.NO_DRIVER: Level.REFUSE,
        codes.DRIVER: Level.UNKNOWN,
        codes.GPU_MODEL: Level.UNKNOWN,
    }
    assert one(items, codes.NO_DRIVER).here == "no libcuda"


def test_a_process_on_a_gpu_that_is_not_there(process: Process) -> None:
    second = replace(process, role="rank-1", devices=(replace(process.devices[0], ordinal=1),))
    items = host.examine(Archive([process, second]), here())
    assert levels(items) == {codes.DEVICES: Level.REFUSE}
    item = next(item for item in items if item.level is Level.REFUSE)
    assert (item.archive, item.here, item.where) == ("2 or more", "1", "rank-1")


def test_an_archive_of_the_simulator(process: Process) -> None:
    items = host.examine(Archive([replace(process, simulated=True)]), here())
    assert levels(items) == {codes.SIMULATED: Level.REFUSE}


def test_an_archive_without_graphs_and_an_installation_without_a_hook(process: Process) -> None:
    items = host.examine(Archive([replace(process, graphs=())]), here(hook_fault="no file"))
    assert levels(items) == {codes.NO_GRAPHS: Level.REFUSE, codes.NO_HOOK: Level.REFUSE}
    assert levels(host.examine(Archive([]), here())) == {codes.NO_GRAPHS: Level.REFUSE}


def test_the_peak_of_device_memory_counts_what_lived_at_one_time(process: Process) -> None:
    assert host.peak(process, 0) == 4 << 20
    assert host.peak(process, 1) == 0


def test_too_little_free_memory_is_a_warning(process: Process) -> None:
    machine = replace(MACHINE, devices=(replace(GPU, free_memory=3 << 20),))
    items = host.examine(Archive([process]), here(machine))
    assert levels(items) == {codes.MEMORY: Level.WARN}
    assert one(items, codes.MEMORY).here == "3 MiB free"


def test_the_hooks_arena_size() -> None:
    assert host.arena_size(8 * GIB) == 256 * GIB
    assert host.arena_size(149250113536) == 278 * GIB


def test_arguments_variables_packages_and_releases(process: Process) -> None:
    context = {
        compare.ARGUMENTS: '["python", "serve.py", "--layers", "4"]',
        compare.VARIABLE + "CUDA_MODULE_LOADING": "LAZY",
        compare.RELEASE: "570.9",
        compare.VERSION: "0.1",
    }
    archive = Archive([process], Head(context, {"torch": "2.11", "triton": "3.5"}))
    items = host.examine(
        archive,
        here(arguments=["/usr/bin/python", "serve.py"], packages={"torch": "2.12"}, version="0.2"),
    )
    assert levels(items) == {
        codes.ARGUMENTS: Level.REFUSE,
        codes.ENGINE: Level.REFUSE,
        codes.VARIABLE: Level.WARN,
        codes.PACKAGE: Level.WARN,
        codes.RELEASE: Level.NOTE,
        codes.VERSION: Level.NOTE,
    }
    found = {item.what: (item.archive, item.here) for item in items}
    assert found["torch"] == ("2.11", "2.12")
    assert found["triton"] == ("3.5", "not found")
    assert found["CUDA_MODULE_LOADING"] == ("LAZY", "not set")
    assert found["command"] == ("python serve.py --layers 4", "/usr/bin/python serve.py")
    same = here(arguments=["/bin/python3.12", "serve.py", "--layers", "4"], environment={"CUDA_MODULE_LOADING": "LAZY"})
    items = host.examine(archive, same)
    assert levels(items) == {codes.ENGINE: Level.UNKNOWN, codes.PACKAGE: Level.UNKNOWN, codes.RELEASE: Level.NOTE}


def test_libraries_by_their_build_ids(process: Process) -> None:
    place = LibraryPlace("libneeded.so", "aa" * 20, 0, 16, 0)
    head = Head(blobs=[BlobEntry(16, bytes(32), place), BlobEntry(16, bytes(32), None)])
    for found, level in ((place.build_id, Level.SAME), ("bb", Level.REFUSE), ("", Level.REFUSE), (None, Level.REFUSE)):
        items = host.examine(Archive([process], head), here(library=lambda _, found=found: found))
        assert one(items, codes.LIBRARY_NEEDED).level is level
    assert one(items, codes.LIBRARY_NEEDED).here == "not found"


@pytest.mark.parametrize(
    ("captured", "now", "level"),
    [
        ({}, {}, None),
        ({"RANK": "0"}, {}, Level.SAME),
        ({"RANK": "0"}, {"RANK": "0"}, Level.SAME),
        ({"RANK": "0"}, {"RANK": "3"}, Level.WARN),
        ({}, {"RANK": "0"}, Level.WARN),
        ({"RANK": "0", "WORLD_SIZE": "2"}, {}, Level.SAME),
        ({"RANK": "0", "WORLD_SIZE": "2"}, {"RANK": "0", "WORLD_SIZE": "2"}, Level.SAME),
        ({"RANK": "0", "WORLD_SIZE": "2"}, {"WORLD_SIZE": "4"}, Level.REFUSE),
    ],
)
def test_ranks(process: Process, captured: dict[str, str], now: dict[str, str], level: Level | None) -> None:
    items = host.examine(Archive([replace(process, ranks=captured)]), here(environment=now))
    assert [item.level for item in items if item.code == codes.RANKS] == ([level] if level else [])


def test_worst_first_and_stable() -> None:
    items = [Item("a", "", "", "", level, str(at)) for at, level in enumerate((Level.SAME, Level.WARN, Level.REFUSE))]
    assert [item.where for item in worst_first([*items, *items])] == ["2", "2", "1", "1", "0", "0"]


def test_another_size_of_memory_keeps_the_recorded_arenas(process: Process) -> None:
    machine = replace(MACHINE, devices=(replace(GPU, total_memory=160 * GIB),))
    items = host.examine(Archive([process]), here(machine))
    assert levels(items) == {codes.ARENAS: Level.NOTE}
    assert (one(items, codes.ARENAS).archive, one(items, codes.ARENAS).here) == ("300.0 GiB", "320.0 GiB")


def test_what_is_allowed_does_not_refuse(process: Process) -> None:
    machine = replace(MACHINE, version=12080, devices=(replace(GPU, name="NVIDIA H100", multiprocessors=114),))
    wrong = {codes.DRIVER, codes.GPU_MODEL, codes.MULTIPROCESSORS}
    for allowed in ((), {codes.DRIVER}, {codes.GPU_MODEL, codes.DRIVER}):
        items = host.examine(Archive([process]), here(machine, allowed=allowed))
        assert levels(items) == {code: Level.ALLOWED if code in allowed else Level.REFUSE for code in wrong}
        assert not usable(items)
    assert usable(host.examine(Archive([process]), here(machine, allowed=wrong)))


def test_allowing_what_is_the_same_changes_nothing(process: Process) -> None:
    assert levels(host.examine(Archive([process]), here(allowed=set(codes.RULES)))) == {}
