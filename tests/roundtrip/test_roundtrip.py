"""The master test: capture, pack, restore at other raw handles, pack what the restore told: nothing differs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.driver_shell import make_shell
from helpers.native_build import PROGRAMS as SOURCES
from helpers.native_build import compile_program, link_simulator, make_kernels
from helpers.roundtrip import Program, Run, python_program
from native.hook_run import Bench, events

from foundry import diff, env
from foundry.model import Arena, Capture, Format, NodeType, Process

CAPTURE_SEED = 7
SEEDS = (11, 23)
NATIVE = {
    "labelled": ("labelled", "kernels.image"),
    "lazy": ("labelled", "kernels.image", "lazy"),
    "fatbin": ("labelled", "kernels.fatbin"),
    "lazy_fatbin": ("labelled", "kernels.fatbin", "lazy"),
    "late_fatbin": ("labelled", "kernels.fatbin", "late"),
    "updated": ("updated", "kernels.image"),
    "tables": ("tables", "kernels.image", "many"),
    "graph": ("graph", "kernels.image"),
    "per_thread": ("per_thread",),
    "refused_nodes": ("refused_nodes",),
}
"""A program of the hook's tests, then the files and words that it is given."""
WITHOUT_NAMES = ("graph", "per_thread", "refused_nodes")
BASE = 0x403500000000
"""Where the hook places the first allocation of a program."""
PROGRAMS = (*NATIVE, "decode_server", "restore_program")


class Workshop:
    """Makes the programs, and captures each once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bench").mkdir()
        self.bench = Bench(folder / "bench")
        make_kernels(folder / "bench" / "kernels.fatbin", SOURCES / "sim_kernels.c", "--fatbin")
        self._captured: dict[str, Run] = {}

    def program(self, name: str) -> Program:
        if name == "decode_server":
            return python_program("decode_server.py", "--once", "--quiet", cache=self.folder / "cache")
        if name == "restore_program":
            return self._restore_program()
        source, *words = NATIVE[name]
        arguments = [str(self.bench.folder / word) if "." in word else word for word in words]
        return Program([str(self.bench.program(source, *link_simulator())), *arguments])

    def _restore_program(self) -> Program:
        binary, kernels = self.folder / "program", self.folder / "kernels.image"
        if not binary.exists():
            compile_program(binary, [SOURCES / "restore_program.cpp"])
            make_kernels(kernels, SOURCES / "restore_kernels.c")
        start = ["init", "context", "alloc:4096", f"library:{kernels}"]
        record = [f"record:decode:1:{BASE}:5", f"record:decode:2:{BASE}:7", f"record:prefill:1:{BASE}:9"]
        # What the program does not ask for, the engine has built all the same.
        ask = ["wait:decode:2", "launch:decode:2", "threads:8:decode:1:2", "built:3"]
        return Program(
            [str(binary), *start, *record, "commit"],
            restore_command=[str(binary), *start, *ask, "commit"],
        )

    def captured(self, name: str) -> Run:
        if name not in self._captured:
            self._captured[name] = self.program(name).captured(self.folder / name, CAPTURE_SEED)
        return self._captured[name]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("roundtrip"))


def told(before: Capture, after: Capture) -> list[str]:
    return [str(one) for one in diff.compare(before, after)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_restore_rebuilds_is_what_was_captured(workshop: Workshop, tmp_path: Path, name: str, seed: int) -> None:
    program, captured = workshop.program(name), workshop.captured(name)
    assert captured.capture.processes[0].graphs
    restored = program.restored(tmp_path / "restored", seed, captured.capture)
    assert told(captured.capture, restored.capture) == []
    # Nothing is so by luck: no handle of the one run means the same in the other.
    for kind in ("Graph", "Kernel", "Image"):
        assert not handles(captured, kind) & handles(restored, kind)
    if program.restore_command is None:
        assert restored.output == captured.output

    again = program.restored(tmp_path / "again", seed + 1, restored.capture)
    assert told(captured.capture, again.capture) == []
    assert again.output.splitlines()[-1:] == restored.output.splitlines()[-1:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_restore_that_begins_early_rebuilds_the_same(workshop: Workshop, tmp_path: Path, name: str) -> None:
    captured = workshop.captured(name)
    role = captured.capture.processes[0].role
    begins = {env.COMMAND: f"child:{os.getpid()}", env.EARLY: f"{role}:0"}
    restored = workshop.program(name).restored(tmp_path / "restored", SEEDS[0], captured.capture, **begins)
    assert told(captured.capture, restored.capture) == []


def handles(run: Run, kind: str) -> set[int]:
    return {event.graph if kind == "Graph" else event.handle for event in events(run.spool(), kind)}


@pytest.mark.parametrize("name", ["lazy_fatbin", "late_fatbin"])
def test_code_that_the_packer_took_out_of_a_fatbin_is_told_as_such(
    workshop: Workshop, tmp_path: Path, name: str
) -> None:
    """A program that loads the container after the engine loaded what was in it gets the engine's copy."""
    capture = workshop.captured(name).capture
    process = capture.processes[0]
    images = tuple(replace(image, blob=len(capture.blobs), unpacked=True) for image in process.images)
    inner = (workshop.bench.folder / "kernels.image").read_bytes()
    unpacked = replace(capture, processes=(replace(process, images=images),), blobs=(*capture.blobs, inner))
    restored = workshop.program(name).restored(tmp_path / "restored", SEEDS[0], unpacked)
    assert told(unpacked, restored.capture) == []
    used = [image for image in restored.capture.processes[0].images if image.in_graphs]
    assert [(image.format, image.size) for image in used] == [(Format.SIMULATED, len(inner))] * len(images)
    # What is loaded is compared: the container is other code, as far as anybody knows.
    assert {one.what for one in diff.compare(capture, restored.capture)} == {"code"}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in WITHOUT_NAMES])
def test_named_graphs_are_the_engines_and_the_program_captures_none(
    workshop: Workshop, tmp_path: Path, name: str
) -> None:
    captured = workshop.captured(name)
    restored = workshop.program(name).restored(tmp_path / "restored", SEEDS[0], captured.capture)
    named = [graph for graph in restored.capture.processes[0].graphs if graph.set]
    assert named
    assert not any(graph.captured for graph in named)
    if name != "restore_program":  # there one graph was never asked for
        assert sum(event.state for event in events(restored.spool(), "GraphRestored")) == len(named)


def order_of_use(run: Run) -> list[tuple[str, str]]:
    """Graphs in the order of their first launch."""
    labels = {event.exec: (event.set, event.key) for event in events(run.spool(), "Graph")}
    order = [labels.get(event.exec, ("", "")) for event in events(run.spool(), "ExecLaunched")]
    return [label for label in order if label[0]]


def test_graphs_are_used_in_the_order_of_the_capture(workshop: Workshop, tmp_path: Path) -> None:
    for name in ("labelled", "decode_server"):
        captured = workshop.captured(name)
        restored = workshop.program(name).restored(tmp_path / name, SEEDS[0], captured.capture)
        assert order_of_use(captured) == order_of_use(restored) != []


def test_a_restore_tells_nothing_of_it_unless_asked(workshop: Workshop, tmp_path: Path) -> None:
    captured = workshop.captured("labelled")
    plain = workshop.program("labelled").restored(tmp_path / "plain", SEEDS[0], captured.capture, FOUNDRY_RESPOOL="0")
    assert [graph.set for graph in plain.capture.processes[0].graphs] == [""]
    assert not events(plain.spool(), "ImageRestored")
    assert "labelled-0: graph labelled/4: graph: present -> none" in told(captured.capture, plain.capture)


def test_a_graph_that_the_program_gives_back_differs(workshop: Workshop, tmp_path: Path) -> None:
    captured = workshop.captured("restore_program")
    program = workshop.program("restore_program")
    assert program.restore_command is not None
    *before, commit = program.restore_command
    given_back = replace(program, restore_command=[*before, "give-up:decode:1:outputs moved", commit])
    restored = given_back.restored(tmp_path / "restored", SEEDS[0], captured.capture)
    assert told(captured.capture, restored.capture) == [
        "program-0: graph decode/1: reason code:  -> exec-changed",
    ]


NO_FLAGS = """
int cuGraphExecGetFlags(void *exec, unsigned long long *flags) {
    (void)exec;
    *flags = 0;
    return 0;
}
"""


def test_a_flag_that_a_driver_tells_is_the_drivers_word(workshop: Workshop, tmp_path: Path) -> None:
    """Here it says that nothing is freed at a launch; the use of node priorities no driver tells."""
    make_shell(tmp_path / "driver", overrides={"cuGraphExecGetFlags": NO_FLAGS})
    program = replace(workshop.program("labelled"), environment=(("LD_LIBRARY_PATH", str(tmp_path / "driver")),))
    captured = program.captured(tmp_path / "captured", CAPTURE_SEED)
    restored = program.restored(tmp_path / "restored", SEEDS[0], captured.capture)
    assert told(captured.capture, restored.capture) == ["labelled-0: graph labelled/outer: instantiate flags: 9 -> 8"]


Plant = Callable[[Process], Process]


def plants() -> Iterator[tuple[str, str, str, Plant]]:
    """Give name, graphs that differ then, what differs, and what plants it in the `lazy` capture."""
    yield (
        "one parameter byte",
        "4",
        "parameters",
        lambda process: replace(process, parameters=changed(process.parameters, 12, 1)),
    )
    yield "a grid", "4", "grid", lambda process: replace(process, launches=grown(process.launches, "grid"))
    yield "a block", "4", "block", lambda process: replace(process, launches=grown(process.launches, "block"))
    yield (
        "shared memory",
        "4",
        "shared bytes",
        lambda process: replace(process, launches=grown(process.launches, "shared_bytes")),
    )
    yield "a memset's value", "4", "memset", lambda process: replace(process, memsets=grown(process.memsets, "value"))
    yield "a copy's length", "4", "copy", lambda process: replace(process, copies=changed(process.copies, 176, 4))
    yield "an edge", "outer", "edges", without_programmatic_edge
    yield "an edge's data", "outer", "edges", with_plain_edge
    yield "a launch attribute", "outer shape-3", "launch attributes", with_other_priority
    yield "a function attribute", "4 2 1 shape-1 shape-3", "function attributes", with_more_shared_memory
    yield "a flag of the instantiation", "outer", "instantiate flags", with_other_flags
    yield (
        "an event's flags",
        "4",
        "event flags",
        lambda process: replace(process, events=(process.events[0] & ~2, *process.events[1:])),
    )
    yield "metadata", "2", "metadata", with_other_metadata
    yield "the size of memory", "1", "memory", with_larger_memory
    yield "the load of an image", "shape-2", "image", with_another_load


def changed(array: Any, index: int, mask: int) -> Any:
    copy = array.copy()
    copy[index] ^= mask
    return copy


def grown(table: Any, column: str) -> Any:
    copy = table.copy()
    cells = copy[column].reshape(len(copy), -1)
    cells[0, 0] += 1
    copy[column] = cells.reshape(copy[column].shape)
    return copy


def with_groups(process: Process, change: Callable[[Any], Any]) -> Process:
    """Change the edges of the group that has a programmatic one."""
    groups = tuple(
        replace(group, edges=change(group.edges)) if group.edges["data"].any() else group for group in process.groups
    )
    return replace(process, groups=groups)


def without_programmatic_edge(process: Process) -> Process:
    return with_groups(process, lambda edges: edges[edges["data"] == 0])


def with_plain_edge(process: Process) -> Process:
    def plain(edges: Any) -> Any:
        copy = edges.copy()
        copy["data"] = 0
        return np.sort(copy, order=("start", "end"))

    return with_groups(process, plain)


def with_other_priority(process: Process) -> Process:
    before, after = (-1).to_bytes(4, "little", signed=True), (-3).to_bytes(4, "little", signed=True)
    sets = tuple(
        tuple((number, after if (number, value) == (8, before) else value) for number, value in each)
        for each in process.attribute_sets
    )
    return replace(process, attribute_sets=sets)


def with_more_shared_memory(process: Process) -> Process:
    kernels = tuple(
        replace(
            kernel, attributes=tuple((number, 2048 if value == 1024 else value) for number, value in kernel.attributes)
        )
        for kernel in process.kernels
    )
    return replace(process, kernels=kernels)


def of_graph(process: Process, key: str, **fields: object) -> Process:
    graphs = tuple(replace(graph, **fields) if graph.key == key else graph for graph in process.graphs)  # type: ignore[arg-type]
    return replace(process, graphs=graphs)


def with_other_flags(process: Process) -> Process:
    return of_graph(process, "outer", instantiate_flags=0)


def with_other_metadata(process: Process) -> Process:
    return of_graph(process, "2", metadata='{"key": "3"}')


def with_larger_memory(process: Process) -> Process:
    """Memory of the last of the sizes: the only graph that refers to its row."""
    (graph,) = (graph for graph in process.graphs if graph.key == "1")
    (row,) = (at for at in graph.references if process.allocations["arena"][at] == Arena.GRAPH)
    table = process.allocations.copy()
    table["size"][row] += 8
    return replace(process, allocations=table)


def with_another_load(process: Process) -> Process:
    """The kernel of `shape-2` comes from another load of the same bytes."""
    (graph,) = (graph for graph in process.graphs if graph.key == "shape-2")
    group = process.groups[int(process.bodies[graph.body])]
    assert group.nodes["type"][0] == NodeType.KERNEL
    kernel = process.kernels[int(group.nodes["kernel"][0])]
    key = process.images[kernel.image].key
    (other,) = (at for at, image in enumerate(process.images) if image.key == key and at != kernel.image)
    nodes = group.nodes.copy()
    nodes["kernel"] = len(process.kernels)
    groups = tuple(replace(each, nodes=nodes) if each is group else each for each in process.groups)
    return replace(process, groups=groups, kernels=(*process.kernels, replace(kernel, image=other)))


@pytest.mark.parametrize(("keys", "what", "plant"), [pytest.param(*rest, id=name) for name, *rest in plants()])
def test_what_a_restore_builds_otherwise_is_found(
    workshop: Workshop, tmp_path: Path, keys: str, what: str, plant: Plant
) -> None:
    """An archive that says something else than the capture: what the engine then builds is read off the driver."""
    captured = workshop.captured("lazy").capture
    planted = replace(captured, processes=(plant(captured.processes[0]),))
    restored = workshop.program("lazy").restored(tmp_path / "restored", SEEDS[0], planted)
    found = diff.compare(captured, restored.capture)
    assert {one.what for one in found} == {what}
    assert {one.where.split(":")[1].split("/")[1] for one in found} == set(keys.split())
    assert told(planted, restored.capture) == []
