"""Each thing that the deep level looks at, damaged on purpose: it is found, with the place and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.archive_builder import build, changed, pieces_of
from helpers.verified import (
    BASE,
    GRAPH,
    LAYOUTS,
    SCRATCH,
    image_of,
    verified_capture,
    with_edges,
    with_fields,
    with_graph,
    with_image,
    with_kernel,
    with_table,
    with_word,
)

from foundry import archive
from foundry.archive.layout import Kind
from foundry.findings import Severity
from foundry.model import NONE, Capture, Contents, Format, LibraryPlace, NodeType
from foundry.verify import Level, Place, Problem, Report, verify

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def sound(tmp_path: Path) -> Capture:
    return verified_capture(tmp_path)


@pytest.fixture
def deep(tmp_path: Path) -> Callable[[Capture], Report]:
    def look(capture: Capture) -> Report:
        path = tmp_path / "a.fdry"
        archive.write(capture, path, force=True)
        with archive.open_archive(path) as opened:
            assert verify(opened, Level.FULL).sound, "only the deep level can find it"
            return verify(opened, Level.DEEP)

    return look


def only(report: Report) -> Problem:
    (problem,) = report.problems
    return problem


def place(key: str, *node: int, **fields: object) -> Place:
    return Place("python-0", ("decode", key), node, **fields)  # type: ignore[arg-type]


def body_with(capture: Capture, kind: NodeType) -> int:
    """The first group that has a node of that kind."""
    groups = capture.processes[0].groups
    return next(index for index, group in enumerate(groups) if (group.nodes["type"] == kind).any())


Deep = Callable[[Capture], Report]


def test_a_sound_archive_is_sound_and_says_what_was_looked_at(sound: Capture, deep: Deep) -> None:
    report = deep(sound)
    assert (report.problems, report.sound) == ([], True)
    assert (report.graphs, report.nodes, report.kernels, report.kernels_checked) == (4, 14, 2, 2)
    assert report.pointers > 10
    assert report.lacking, "it says of itself that one graph cannot be restored"


class TestKernels:
    def test_a_name_that_the_image_does_not_have(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_kernel(sound, "add", name="subtract")))
        assert (problem.code, problem.severity) == ("verify-kernel-missing", Severity.ERROR)
        assert problem.place == place("1", 1, kernel="subtract")
        assert problem.text == "image 0 from `libkernels.so` (blob 0) has no kernel of that name (3 nodes use it)"

    def test_a_parameter_at_another_place(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_kernel(sound, "add", parameters=((0, 8), (8, 4), (12, 8)))))
        assert problem.code == "verify-layout-differs"
        assert problem.place == place("1", 1, kernel="add", parameter=1, offset=8)
        assert problem.text.startswith(
            "the archive has 4 bytes at byte 8, image 0 from `libkernels.so` (blob 0) has 8 "
        )

    def test_a_parameter_too_few(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_kernel(sound, "fill", parameters=((0, 8), (8, 8)))))
        assert problem.place == place("1", 0, kernel="fill", parameter=1, offset=8)
        layouts = {**LAYOUTS, "fill": [(0, 8), (8, 4), (12, 4), (16, 4)]}
        problem = only(deep(with_image(sound, image_of(layouts))))
        assert problem.place == place("1", 0, kernel="fill", parameter=3, offset=16)
        assert problem.text.startswith("the archive has no such parameter")

    def test_an_image_that_is_none(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_image(sound, b"\x7fELF" + bytes(200))))
        assert (problem.code, problem.severity) == ("verify-image", Severity.ERROR)
        assert problem.place == place("1", 0, kernel="fill")
        assert problem.text.endswith("is not an ELF file for a GPU; 1 more kernels are in it")

    def test_real_cubins_and_fatbins_are_looked_into(self, sound: Capture, deep: Deep) -> None:
        kernels = tuple(
            replace(kernel, name={"fill": "scale", "add": "add"}[kernel.name]) for kernel in sound.processes[0].kernels
        )
        for name in ("sm_90.cubin", "default.fatbin"):
            real = with_image(sound, (DATA / "fatbins" / name).read_bytes())
            assert deep(with_fields(real, kernels=kernels)).problems == []
            wrong = with_kernel(with_fields(real, kernels=kernels), "add", parameters=((0, 8), (8, 8), (18, 2)))
            assert only(deep(wrong)).place == place("1", 1, kernel="add", parameter=2, offset=18)

    def test_a_fatbin_that_cannot_be_unpacked_is_no_fault_of_the_archive(self, sound: Capture, deep: Deep) -> None:
        both = (DATA / "fatbins" / "both.fatbin").read_bytes()
        report = deep(with_image(sound, both))
        assert (only(report).code, report.sound, report.lacking) == ("verify-image-foreign", True, True)

    def test_images_that_a_thin_archive_does_not_hold_are_told(self, sound: Capture, deep: Deep) -> None:
        place_of = LibraryPlace("libkernels.so", "ab12", 4096, len(sound.blobs[0]), 0)
        report = deep(replace(sound, outside={0: place_of}))
        assert (only(report).code, report.sound, report.lacking) == ("blob-outside", True, True)
        assert "lies in the library `libkernels.so`, build id ab12, and was not looked into" in only(report).text

    def test_ptx_tells_names_only(self, sound: Capture, deep: Deep) -> None:
        text = b".version 8.0\n.target sm_90\n.visible .entry fill(.param .u64 a)\n"
        images = tuple(replace(image, format=Format.PTX) for image in sound.processes[0].images)
        report = deep(with_fields(with_image(sound, text), images=images))
        assert only(report).place == place("1", 1, kernel="add")

    def test_several_processes_with_one_image_are_all_named(self, tmp_path: Path, deep: Deep) -> None:
        capture = verified_capture(tmp_path / "two", roles=("rank-0", "rank-1"))
        report = deep(with_image(capture, image_of({"fill": LAYOUTS["fill"]})))
        assert [problem.place.process for problem in report.problems] == ["rank-0", "rank-1"]


class TestPointers:
    def test_a_parameter_that_points_to_scratch_memory(self, sound: Capture, deep: Deep) -> None:
        report = deep(with_word(sound, 1, 8, SCRATCH + 16))
        problem = report.problems[0]
        assert (problem.code, problem.place.process) == ("verify-pointer", "python-0")
        assert problem.place == place("1", 1, kernel="add", parameter=1, offset=8)
        assert problem.text == (
            f"{SCRATCH + 16:#x} lies in allocation 1 (4096 bytes of the scratch arena), "
            "which a restore does not bring back"
        )

    def test_a_node_inside_a_child_graph_is_named_by_its_path(self, sound: Capture, deep: Deep) -> None:
        problem = deep(with_word(sound, 3, 8, SCRATCH)).problems[0]
        assert problem.place == place("1", 4, 1, kernel="add", parameter=1, offset=8)
        assert str(problem.place) == (
            "process `python-0`, graph `decode` `1`, node 4 > 1, kernel `add`, parameter 1, byte 8"
        )

    def test_a_memset_of_memory_that_is_not_known(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_table(sound, "memsets", 0, destination=0x1234)))
        assert (problem.code, problem.place) == ("verify-pointer", place("1", 2, offset=0))
        assert "0x1234 lies in no memory that is known" in problem.text

    def test_a_memset_of_memory_that_was_freed(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_table(sound, "memsets", 0, destination=BASE + 4096)))
        assert "in no allocation that stood then" in problem.text

    def test_a_copy_from_memory_that_is_not_known(self, sound: Capture, deep: Deep) -> None:
        copies = sound.processes[0].copies.copy()
        copies[48:56] = np.frombuffer((0x1234).to_bytes(8, "little"), np.uint8)
        problem = only(deep(with_fields(sound, copies=copies)))
        assert (problem.code, problem.place) == ("verify-pointer", place("1", 3, offset=48))

    def test_an_allocation_that_is_not_listed(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_graph(sound, 0, references=(0,))))
        assert (problem.code, problem.place) == (
            "verify-references",
            place("1", 1, kernel="add", parameter=1, offset=8),
        )
        assert problem.text.endswith("(4096 bytes of the graph arena), which the graph does not list as needed")

    def test_an_allocation_that_is_listed_for_nothing(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_graph(sound, 0, references=(0, 2, 3))))
        assert (problem.code, problem.place) == ("verify-references", place("1"))
        assert "allocation 3" in problem.text

    def test_words_that_point_nowhere_are_counted(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_graph(sound, 1, dangling_words=2)))
        assert (problem.code, problem.place) == ("verify-dangling-count", place("2"))
        assert problem.text == "it says that 2 of its words point to no allocation, and 0 do"

    def test_a_memset_that_passes_the_end_is_told(self, sound: Capture, deep: Deep) -> None:
        report = deep(with_table(sound, "memsets", 0, width=4096))
        assert (only(report).code, only(report).place) == ("verify-span", place("1", 2, offset=0))
        assert (report.sound, report.lacking) == (True, True)

    def test_a_copy_that_passes_the_end_is_told(self, sound: Capture, deep: Deep) -> None:
        copies = sound.processes[0].copies.copy()
        copies[176:184] = np.frombuffer((3600).to_bytes(8, "little"), np.uint8)
        problem = only(deep(with_fields(sound, copies=copies)))
        assert (problem.code, problem.place) == ("verify-span", place("1", 3, offset=136))
        assert "a copy of 3600 bytes passes the end" in problem.text


class TestGraphs:
    def test_a_cycle(self, sound: Capture, deep: Deep) -> None:
        group = body_with(sound, NodeType.GRAPH)
        report = deep(with_edges(sound, group, [(0, 1, 0), (1, 3, 0), (3, 5, 0), (5, 1, 0), (2, 4, 0)]))
        problem = only(report)
        assert (problem.code, problem.place) == ("verify-cycle", place("1", 1, kernel="add"))
        assert problem.text == f"its nodes wait for one another: 1 > 3 > 5 > 1 (group {group}, 1 bodies)"

    def test_a_node_that_waits_for_itself_inside_a_child_graph(self, sound: Capture, deep: Deep) -> None:
        group = body_with(sound, NodeType.KERNEL)
        problem = only(deep(with_edges(sound, group, [(1, 1, 0)])))
        assert problem.code == "verify-cycle"
        assert "1 > 1" in problem.text

    def test_edges_backwards_are_no_cycle(self, sound: Capture, deep: Deep) -> None:
        group = body_with(sound, NodeType.GRAPH)
        assert deep(with_edges(sound, group, [(5, 4, 0), (4, 3, 0), (3, 1, 0), (5, 1, 0)])).problems == []

    @pytest.mark.parametrize(
        ("field", "value", "shown"),
        [("grid", (0, 1, 1), "a grid of 0 x 1 x 1"), ("block", (1024, 2, 1), "of 1024 x 2 x 1 threads")],
    )
    def test_a_launch_that_no_gpu_runs(
        self, sound: Capture, deep: Deep, field: str, value: tuple[int, ...], shown: str
    ) -> None:
        problem = only(deep(with_table(sound, "launches", 3, **{field: value})))
        assert (problem.code, problem.place) == ("verify-node-values", place("1", 4, 1, kernel="add"))
        assert shown in problem.text

    def test_a_memset_that_no_driver_takes(self, sound: Capture, deep: Deep) -> None:
        problem = only(deep(with_table(sound, "memsets", 0, element_size=3)))
        assert (problem.code, problem.place) == ("verify-node-values", place("1", 2))


def test_contents_in_no_arena(sound: Capture, deep: Deep) -> None:
    size = len(sound.blobs[1])
    report = deep(with_fields(sound, contents=(Contents(GRAPH, size, 1), Contents(BASE - 8, size, 1))))
    assert (only(report).code, only(report).place, report.sound) == ("verify-contents", Place("python-0"), True)


def test_a_summary_that_says_something_else(sound: Capture, tmp_path: Path) -> None:
    pieces = pieces_of(sound)
    data = next(piece.data for piece in pieces if piece.kind == Kind.SUMMARY).replace(
        b'"restorable":3', b'"restorable":4'
    )
    path = tmp_path / "a.fdry"
    path.write_bytes(build(changed(pieces, Kind.SUMMARY, data=data)))
    with archive.open_archive(path) as opened:
        problem = only(verify(opened, Level.DEEP))
    assert (problem.code, problem.place) == ("verify-summary", Place("python-0"))
    assert problem.text == "the summary says of `restorable` 4, it is 3"


def test_everything_that_is_wrong_is_told(sound: Capture, deep: Deep) -> None:
    wrong = with_kernel(with_table(sound, "memsets", 0, destination=0x1234), "add", name="subtract")
    wrong = with_graph(wrong, 1, dangling_words=2)
    assert {problem.code for problem in deep(wrong).problems} == {
        "verify-kernel-missing", "verify-pointer", "verify-dangling-count",
    }  # fmt: skip


def test_kernels_without_an_image_are_passed_over(sound: Capture, deep: Deep) -> None:
    """A graph that cannot be restored may name such, and says so itself."""
    reasons = {"reason_code": "kernel-unknown", "reason": "the image of its kernel is not known"}
    wrong = sound
    for index in range(4):
        wrong = with_graph(wrong, index, **reasons)
    wrong = with_fields(wrong, images=tuple(replace(image, blob=NONE) for image in wrong.processes[0].images))
    assert deep(wrong).problems == []
