"""Graphs built on the simulator through cuda-python, from the archive alone; and drivers that do not do what they say.

A driver is made to lie by a `sitecustomize` that the fresh process imports.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.native_build import make_kernels
from helpers.spool_writer import SpoolWriter, body
from helpers.verified import (
    ARENA,
    BASE,
    FILL,
    LAYOUTS,
    body_with_edges,
    fill,
    on_simulated_gpu,
    verified_capture,
    with_edges,
    with_fields,
    with_graph,
    with_image,
    with_kernel,
)

from foundry import archive
from foundry.launch import environment
from foundry.model import Capture, LibraryPlace
from foundry.pack import pack
from foundry.verify.device.parent import DeviceReport, Request, check_process
from foundry.verify.report import Place

KERNELS = Path(__file__).parents[2] / "native" / "restore_kernels.c"

Build = Callable[..., DeviceReport]


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_kernels(tmp_path_factory.mktemp("kernels") / "kernels.fsim", KERNELS)


@pytest.fixture
def sound(tmp_path: Path, image: bytes) -> Capture:
    return verified_capture(tmp_path, image)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Check a capture on the simulator; `lie` is Python that the fresh process runs first."""

    def check(
        capture: Capture, *, lie: str = "", launching: bool = False, seconds: float = 30.0, **variables: str
    ) -> DeviceReport:
        path = tmp_path / "a.fdry"
        archive.write(capture, path, force=True)
        if lie:
            folder = tmp_path / "lie"
            folder.mkdir(exist_ok=True)
            (folder / "sitecustomize.py").write_text(LIAR + lie)
            monkeypatch.syspath_prepend(str(folder))
        base = {**os.environ, **variables}
        request = Request(path, environment.plain(base, simulated=True), launching, seconds)
        report = DeviceReport()
        for number, process in enumerate(capture.processes):
            check_process(request, number, process.role, [(graph.set, graph.key) for graph in process.graphs], report)
        return report

    return check


LIAR = """
import os, sys, time
from cuda.bindings import driver

def lie(name):
    real = getattr(driver, name)
    def decorate(other):
        calls = []
        def call(*arguments):
            calls.append(arguments)
            return other(real, len(calls), *arguments)
        setattr(driver, name, call)
    return decorate
"""


def outcomes(report: DeviceReport) -> dict[str, str]:
    return {graph.graph[1]: graph.outcome for graph in report.graphs}


def place(key: str, *node: int, **fields: object) -> Place:
    return Place("python-0", ("decode", key), node, **fields)  # type: ignore[arg-type]


class TestSound:
    def test_every_kind_of_node_is_built_and_read_back(self, sound: Capture, built: Build) -> None:
        report = built(sound)
        assert report.problems == []
        assert outcomes(report) == {"1": "built", "2": "built", "3": "skipped", "4": "built"}
        assert [(graph.nodes, graph.edges) for graph in report.graphs] == [(8, 6), (2, 1), (0, 0), (2, 1)]
        assert (report.simulated, report.driver, report.devices) == (True, 13000, ["NVIDIA Simulated H200"])

    def test_a_launch_where_that_is_safe(self, sound: Capture, built: Build) -> None:
        report = built(sound, launching=True)
        assert report.problems == []
        assert outcomes(report) == {"1": "launched", "2": "launched", "3": "skipped", "4": "built"}
        assert report.graphs[3].text == "not launched: it records or waits for an event"

    def test_modules_as_well_as_libraries(self, sound: Capture, built: Build) -> None:
        images = tuple(replace(image, api=1) for image in sound.processes[0].images)
        report = built(with_fields(sound, images=images))
        assert (report.problems, report.count("built")) == ([], 3)

    def test_of_an_image_that_was_linked_what_it_was_linked_from_is_loaded(self, sound: Capture, built: Build) -> None:
        whole = sound.processes[0].images[0].blob
        capture = replace(sound, blobs=(*sound.blobs, b"linked code of another kernel"))
        linked = replace(sound.processes[0].images[0], blob=len(sound.blobs), original=whole)
        report = built(with_fields(capture, images=(linked, *sound.processes[0].images[1:])))
        assert outcomes(report) == outcomes(built(sound))
        assert report.problems == built(sound).problems

    def test_several_processes_one_after_the_other(self, tmp_path: Path, image: bytes, built: Build) -> None:
        report = built(verified_capture(tmp_path / "two", image, ("rank-0", "rank-1")), launching=True)
        assert report.problems == []
        assert [graph.process for graph in report.graphs] == ["rank-0"] * 4 + ["rank-1"] * 4

    def test_other_handles_and_addresses_of_the_driver_make_no_difference(self, sound: Capture, built: Build) -> None:
        for seed in ("1", "99"):
            assert built(sound, launching=True, FOUNDRY_SIM_SEED=seed).problems == []

    def test_launch_attributes_are_set_and_read_back(self, sound: Capture, built: Build) -> None:
        sets = tuple(
            tuple((number, struct.pack("<i", -1) if number == 8 else value) for number, value in each)
            for each in sound.processes[0].attribute_sets
        )
        changed = with_fields(sound, attribute_sets=sets)
        assert built(changed).problems == []
        report = built(
            changed,
            lie="""
@lie("cuGraphKernelNodeSetAttribute")
def _(real, call, node, number, value):
    return (driver.CUresult.CUDA_SUCCESS,)
""",
        )
        (problem,) = report.problems
        assert (problem.code, problem.place) == ("verify-device-attribute", place("1", 0, kernel="fill"))
        assert problem.text.startswith("its launch attribute 8 reads back as ")

    def test_a_thin_archive_lacks_kernels_and_that_is_no_fault(self, sound: Capture, built: Build) -> None:
        report = built(replace(sound, outside={0: LibraryPlace("libkernels.so", "ab12", 4096, len(sound.blobs[0]), 0)}))
        assert (report.problems, report.lacking) == ([], True)
        assert outcomes(report) == {"1": "outside", "2": "outside", "3": "skipped", "4": "built"}
        assert report.graphs[0].text == "kernels of it are not in the archive, but in the library `libkernels.so`"


class TestPlantedFaults:
    def test_a_kernel_name(self, sound: Capture, built: Build) -> None:
        report = built(with_kernel(sound, "add", name="subtract"))
        assert [problem.code for problem in report.problems] == ["verify-device-kernel"] * 2
        assert report.problems[0].place == place("1", 1, kernel="subtract")
        assert "CUDA_ERROR_NOT_FOUND" in report.problems[0].text
        assert outcomes(report) == {"1": "failed", "2": "failed", "3": "skipped", "4": "built"}

    def test_a_parameter_layout(self, sound: Capture, built: Build) -> None:
        report = built(with_kernel(sound, "add", parameters=((0, 8), (8, 4), (16, 4))))
        assert report.problems[0].code == "verify-device-layout"
        assert report.problems[0].place == place("1", 1, kernel="add", parameter=1)
        assert report.problems[0].text == "the archive has 4 bytes at byte 8, the driver 8 bytes at byte 8"

    def test_a_parameter_too_many_for_the_archive(self, sound: Capture, built: Build) -> None:
        report = built(with_kernel(sound, "add", parameters=((0, 8), (8, 12))))
        assert (report.problems[0].code, report.problems[0].place.parameter) == ("verify-device-layout", 1)

    def test_an_edge_that_makes_a_cycle(self, sound: Capture, built: Build) -> None:
        group = body_with_edges(sound, 5)
        report = built(with_edges(sound, group, [(0, 1, 0), (1, 3, 0), (3, 1, 0)]))
        (problem,) = report.problems
        assert (problem.code, problem.place.graph) == ("verify-device-driver", ("decode", "1"))
        assert problem.text.startswith("cuGraphInstantiate says CUDA_ERROR_")

    def test_an_image_that_is_none(self, sound: Capture, built: Build) -> None:
        report = built(with_image(sound, b"FDRYSIM1" + bytes(64)))
        assert {problem.code for problem in report.problems} == {"verify-device-image"}
        assert report.problems[0].place == place("1", 0, kernel="fill")

    def test_a_function_attribute(self, sound: Capture, built: Build) -> None:
        report = built(with_kernel(sound, "fill", attributes=((8, 1 << 30),)))
        assert report.problems[0].code == "verify-device-attribute"
        assert report.problems[0].place == place("1", 0, kernel="fill")

    def test_a_memset_where_nothing_is_mapped(self, sound: Capture, built: Build) -> None:
        table = sound.processes[0].memsets.copy()
        table["destination"][0] = 0x12345000
        (problem,) = built(with_fields(sound, memsets=table)).problems
        assert (problem.code, problem.place) == ("verify-device-node", place("1", 2))

    def test_another_gpu_model_is_a_fault_of_the_machine(self, sound: Capture, built: Build) -> None:
        devices = tuple(replace(device, name="NVIDIA B300") for device in sound.processes[0].devices)
        report = built(with_fields(sound, devices=devices))
        assert [problem.code for problem in report.problems] == ["verify-device-model"]
        assert report.only_the_machine
        assert set(outcomes(report).values()) == {"not reached"}

    def test_too_little_memory_is_a_fault_of_the_machine(self, sound: Capture, built: Build) -> None:
        report = built(sound, FOUNDRY_SIM_MEMORY=str(100 << 20))
        assert {problem.code for problem in report.problems} == {"verify-device-memory"}
        assert report.only_the_machine
        assert outcomes(report)["4"] == "built", "it points to no memory"

    def test_a_range_that_is_not_free(self, sound: Capture, built: Build) -> None:
        base = sound.processes[0].devices[0].base
        occupied = f"""
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
assert libc.mmap({base}, 4096, 0, 0x100022, -1, 0) == {base}
"""
        report = built(sound, lie=occupied)
        assert {problem.code for problem in report.problems} == {"verify-device-range"}
        assert report.only_the_machine

    def test_no_gpu_at_all(self, sound: Capture, built: Build) -> None:
        report = built(sound, FOUNDRY_SIM_DEVICES="0")
        (problem,) = report.problems
        assert problem.code == "verify-device-none"
        assert "CUDA_ERROR_NO_DEVICE" in problem.text

    def test_a_driver_function_that_fails(self, sound: Capture, built: Build) -> None:
        report = built(sound, FOUNDRY_SIM_FAIL="cuGraphAddMemcpyNode:1")
        (problem,) = report.problems
        assert (problem.code, problem.place) == ("verify-device-node", place("1", 3))
        assert problem.text.startswith("it cannot be added: cuGraphAddMemcpyNode says CUDA_ERROR_")


class TestLiars:
    def test_an_edge_that_is_dropped(self, sound: Capture, built: Build) -> None:
        report = built(
            sound,
            lie="""
@lie("cuGraphAddDependencies")
def _(real, call, graph, starts, ends, data, count):
    return real(graph, starts[1:], ends[1:], data and data[1:], count - 1) if call == 2 else real(
        graph, starts, ends, data, count)
""",
        )
        (problem,) = report.problems
        assert (problem.code, problem.place) == ("verify-device-edges", place("1", 0, kernel="fill"))
        assert problem.text == "its edge to node 1 with data 0000000000000000 does not read back"

    def test_an_edge_whose_data_is_dropped(self, sound: Capture, built: Build) -> None:
        report = built(
            sound,
            lie="""
@lie("cuGraphAddDependencies")
def _(real, call, graph, starts, ends, data, count):
    return real(graph, starts, ends, None, count)
""",
        )
        (problem,) = report.problems
        assert (problem.code, problem.place) == ("verify-device-edges", place("2", 0, kernel="fill"))
        assert problem.text == "its edge to node 1 with data 0100010000000000 does not read back"

    @pytest.mark.parametrize(
        ("change", "what"),
        [
            ("wanted.gridDimX += 1", "its grid reads back as (2, 1, 1), not (1, 1, 1)"),
            ("wanted.sharedMemBytes = 64", "its shared memory reads back as 64, not 0"),
        ],
    )
    def test_a_launch_that_is_changed(self, sound: Capture, built: Build, change: str, what: str) -> None:
        report = built(
            sound,
            lie=f"""
@lie("cuGraphAddKernelNode")
def _(real, call, graph, before, count, wanted):
    if call == 3:
        {change}
    return real(graph, before, count, wanted)
""",
        )
        (problem,) = report.problems
        assert (problem.code, problem.place, problem.text) == (
            "verify-device-node",
            place("1", 4, 0, kernel="fill"),
            what,
        )

    def test_a_parameter_that_is_changed(self, sound: Capture, built: Build) -> None:
        report = built(
            sound,
            lie="""
import ctypes
@lie("cuGraphAddKernelNode")
def _(real, call, graph, before, count, wanted):
    if call == 2:
        second = ctypes.cast(wanted.kernelParams, ctypes.POINTER(ctypes.c_uint64))[1]
        ctypes.cast(second, ctypes.POINTER(ctypes.c_uint8))[3] ^= 1
    return real(graph, before, count, wanted)
""",
        )
        (problem,) = report.problems
        assert problem.place == place("1", 1, kernel="add", parameter=1, offset=8)
        assert problem.text == "its parameter 1 of 8 bytes reads back with another value"

    def test_flags_that_are_changed(self, sound: Capture, built: Build) -> None:
        report = built(
            with_graph(sound, 1, instantiate_flags=1),
            lie="""
@lie("cuGraphInstantiate")
def _(real, call, graph, flags):
    return real(graph, 0)
""",
        )
        (problem,) = report.problems
        assert (problem.code, problem.place) == ("verify-device-flags", place("2"))

    def test_a_flag_that_no_driver_tells_is_no_problem(self, sound: Capture, built: Build) -> None:
        lie = """
@lie("cuGraphExecGetFlags")
def _(real, call, execution):
    error, flags = real(execution)
    return error, int(flags) & ~8
"""
        assert not built(with_graph(sound, 1, instantiate_flags=9), lie=lie).problems


class TestNeverAHang:
    def test_a_launch_that_does_not_end_ends_its_process_and_the_others_go_on(
        self, sound: Capture, built: Build
    ) -> None:
        report = built(
            sound,
            launching=True,
            seconds=1.0,
            lie="""
@lie("cuStreamQuery")
def _(real, call, stream):
    return (driver.CUresult.CUDA_ERROR_NOT_READY,)
""",
        )
        assert [(problem.code, problem.place.graph) for problem in report.problems] == [
            ("verify-device-hang", ("decode", "1")),
            ("verify-device-hang", ("decode", "2")),
        ]
        assert outcomes(report) == {"1": "failed", "2": "failed", "3": "skipped", "4": "built"}

    def test_a_launch_that_fails_ends_its_process_and_the_others_go_on(self, sound: Capture, built: Build) -> None:
        report = built(
            sound,
            launching=True,
            lie="""
@lie("cuStreamQuery")
def _(real, call, stream):
    return (driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,)
""",
        )
        assert [problem.code for problem in report.problems] == ["verify-device-launch"] * 2
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in report.problems[0].text
        assert outcomes(report)["4"] == "built"

    def test_a_driver_that_hangs_is_ended_from_outside(self, sound: Capture, built: Build) -> None:
        report = built(
            sound,
            seconds=2.0,
            lie="""
@lie("cuGraphInstantiate")
def _(real, call, graph, flags):
    time.sleep(600) if call == 2 else None
    return real(graph, flags)
""",
        )
        (problem,) = report.problems
        assert (problem.code, problem.place) == ("verify-device-hang", place("2"))
        assert outcomes(report) == {"1": "built", "2": "failed", "3": "skipped", "4": "built"}

    def test_a_driver_that_crashes_is_named_with_its_graph(self, sound: Capture, built: Build) -> None:
        report = built(
            sound,
            lie="""
@lie("cuGraphInstantiate")
def _(real, call, graph, flags):
    sys.stderr.write("the driver is unwell\\n")
    sys.stderr.flush()
    os.abort()
""",
        )
        assert [(problem.code, problem.place.graph) for problem in report.problems] == [
            ("verify-device-crash", ("decode", key)) for key in ("1", "2", "4")
        ]
        assert report.problems[0].text == "its process was ended by SIGABRT: the driver is unwell"

    def test_a_process_that_does_not_start(self, sound: Capture, built: Build) -> None:
        report = built(sound, lie="raise SystemExit(7)")
        (problem,) = report.problems
        assert (problem.code, problem.place) == ("verify-device-crash", Place("python-0"))
        assert "at its start" in problem.text
        assert set(outcomes(report).values()) == {"not reached"}


def test_memory_of_one_graph_is_given_back_for_that_of_another(tmp_path: Path, image: bytes, built: Build) -> None:
    size = 300 << 20
    spool = SpoolWriter(tmp_path / "spool")
    spool.driver()
    spool.device(base=BASE, arena_size=ARENA)
    spool.context(0xC0)
    spool.image(0x10, image, bytes(32))
    spool.kernel(FILL, 0x10, "fill", LAYOUTS["fill"])
    for number in range(4):
        spool.allocation(BASE + number * size, size, 0, number)
        spool.graph(0x90 + number, body([fill(BASE + number * size + 64, 1, 4)]), ("decode", str(number)), 0xC0)
    spool.commit()
    spool.end()
    large = on_simulated_gpu(pack(spool.write())[0])
    report = built(large, launching=True, FOUNDRY_SIM_MEMORY=str(700 << 20))
    assert (report.problems, report.count("launched")) == ([], 4)
    short = built(large, FOUNDRY_SIM_MEMORY=str(500 << 20))
    assert [problem.code for problem in short.problems] == ["verify-device-memory"] * 4
    assert short.problems[0].text == f"it points to {size} bytes more than are mapped, {500 << 20} bytes are free"


def test_layouts_of_the_helper_are_those_of_the_kernels(image: bytes) -> None:
    from foundry.binary.entries import entries

    found = entries(image, 90)
    assert {name: found.layout(name) for name in LAYOUTS} == {name: tuple(places) for name, places in LAYOUTS.items()}
