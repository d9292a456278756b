"""Captures whose images really hold their kernels, with a graph of each kind of node, to be damaged on purpose."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from helpers.spool_writer import (
    SpoolWriter,
    body,
    child_node,
    copy_bytes,
    copy_node,
    empty_node,
    event_node,
    kernel_node,
    memset_node,
)

from foundry.model import Capture, Graph, Process
from foundry.pack import pack

BASE, ARENA = 0x400000000000, 1 << 38
SCRATCH, GRAPH = BASE + ARENA, BASE + 2 * ARENA
SIMULATED_GPU = "NVIDIA Simulated H200"
LAYOUTS = {"fill": [(0, 8), (8, 4), (12, 4)], "add": [(0, 8), (8, 8), (16, 4)]}
"""Those of `tests/native/restore_kernels.c`."""
FILL, ADD = 0x71, 0x72
PROGRAMMATIC = 0x10001
"""Data of an edge by which a kernel starts before the one before it ends."""


def image_of(layouts: Mapping[str, Sequence[tuple[int, int]]]) -> bytes:
    """An image of the simulator that can be looked into, but not run."""
    text = "".join(
        f"kernel {name} 0 49152 {len(places)}{''.join(f' {offset}:{size}' for offset, size in places)}\n"
        for name, places in layouts.items()
    ).encode()
    code = b"\x7fELF and so on   "
    at = -(-(24 + len(text)) // 16) * 16
    return (struct.pack("<8sQII", b"FDRYSIM1", at + len(code), len(text), at) + text).ljust(at, b"\0") + code


def fill(address: int, value: int, count: int, attributes: Sequence[tuple[int, bytes]] = ()) -> bytes:
    return kernel_node(FILL, struct.pack("<QII", address, value, count), attributes=attributes, context=0xC0)


def add(address: int, other: int, count: int) -> bytes:
    return kernel_node(ADD, struct.pack("<QQI", address, other, count), context=0xC0)


def one_process(session: Path, image: bytes, role: str = "python-0", lacking: bool = True) -> None:
    """Write the spool of a process with graphs of all kinds of nodes; `decode` `3`, if wanted, cannot be restored."""
    spool = SpoolWriter(session, role)
    spool.driver()
    spool.device(base=BASE, arena_size=ARENA)
    spool.context(0xC0)
    spool.allocation(BASE, 4096, 0, 0)
    spool.allocation(SCRATCH, 4096, 1, 0)
    spool.allocation(GRAPH, 4096, 2, 0)
    spool.allocation(BASE + 4096, 512, 0, 1)
    spool.free(BASE + 4096)
    spool.image(0x10, image, bytes(32), api=2)
    spool.kernel(FILL, 0x10, "fill", LAYOUTS["fill"], [(8, 1024)])
    spool.kernel(ADD, 0x10, "add", LAYOUTS["add"])
    spool.event(0xE0, 2)
    spool.event(0xE1, 2)
    inner = body([fill(BASE + 64, 7, 4), add(BASE + 64, GRAPH, 4)])
    nodes = [
        fill(BASE, 3, 16, [(8, struct.pack("<i", 0))]),
        add(BASE, GRAPH, 16),
        memset_node(GRAPH + 256, 5, 8),
        copy_node(copy_bytes(BASE, GRAPH + 512, 64), 0xC0),
        child_node(inner),
        empty_node(),
    ]
    spool.graph(0x90, body(nodes, [(0, 1, 0), (1, 3, 0), (2, 3, 0), (3, 4, 0), (4, 5, 0)]), ("decode", "1"), 0xC0)
    spool.graph(0x91, body([fill(GRAPH, 1, 8), add(GRAPH, BASE, 8)], [(0, 1, PROGRAMMATIC)]), ("decode", "2"), 0xC0)
    if lacking:
        spool.graph(0x92, body([fill(BASE, 1, 2), event_node(0xE0)]), ("decode", "3"), 0xC0)
    spool.graph(0x93, body([event_node(0xE1), event_node(0xE1, False)]), ("decode", "4"), 0xC0)
    spool.event_gone(0xE1)
    spool.contents(GRAPH, bytes(range(64)))
    spool.commit()
    spool.end()
    spool.write()


def verified_capture(
    folder: Path, image: bytes = b"", roles: Sequence[str] = ("python-0",), lacking: bool = True
) -> Capture:
    """Pack such processes. Without an image given they have one that cannot run."""
    for role in roles:
        one_process(folder / "spool", image or image_of(LAYOUTS), role, lacking)
    capture = on_simulated_gpu(pack(folder / "spool")[0])
    graphs = [graph for process in capture.processes for graph in process.graphs if graph.key != "3"]
    assert all(graph.restorable for graph in graphs)
    return capture


def on_simulated_gpu(capture: Capture) -> Capture:
    """Give the devices the name of the simulator's."""
    processes = tuple(
        replace(process, devices=tuple(replace(device, name=SIMULATED_GPU) for device in process.devices))
        for process in capture.processes
    )
    return replace(capture, processes=processes)


def with_process(capture: Capture, change: Callable[[Process], Process], index: int = 0) -> Capture:
    """Change one process."""
    processes = list(capture.processes)
    processes[index] = change(processes[index])
    return replace(capture, processes=tuple(processes))


def with_fields(capture: Capture, **fields: Any) -> Capture:
    """Replace fields of the first process."""
    return with_process(capture, lambda process: replace(process, **fields))


def with_graph(capture: Capture, index: int, **fields: Any) -> Capture:
    """Replace fields of a graph of the first process."""
    graphs: list[Graph] = list(capture.processes[0].graphs)
    graphs[index] = replace(graphs[index], **fields)
    return with_fields(capture, graphs=tuple(graphs))


def with_kernel(capture: Capture, which: str, **fields: Any) -> Capture:
    """Replace fields of the kernel of that name."""
    kernels = tuple(
        replace(kernel, **fields) if kernel.name == which else kernel for kernel in capture.processes[0].kernels
    )
    return with_fields(capture, kernels=kernels)


def with_image(capture: Capture, data: bytes) -> Capture:
    """Have other bytes where the image's are."""
    (blob,) = {image.blob for process in capture.processes for image in process.images}
    return replace(capture, blobs=tuple(data if index == blob else old for index, old in enumerate(capture.blobs)))


def with_table(capture: Capture, table: str, row: int, **fields: Any) -> Capture:
    """Change values of a row of a table of the first process."""
    changed = getattr(capture.processes[0], table).copy()
    for name, value in fields.items():
        changed[name][row] = value
    return with_fields(capture, **{table: changed})


def with_word(capture: Capture, kernel_node_number: int, offset: int, word: int) -> Capture:
    """Change 8 bytes in the parameters of the n-th kernel node of the first process."""
    from foundry.model.tables import padded_sizes, starts
    from foundry.model.views import parameter_sizes

    process = capture.processes[0]
    changed = process.parameters.copy()
    at = int(starts(padded_sizes(parameter_sizes(process)))[kernel_node_number]) + offset
    changed[at : at + 8] = np.frombuffer(struct.pack("<Q", word), np.uint8)
    return with_fields(capture, parameters=changed)


def with_edges(capture: Capture, group: int, edges: Sequence[tuple[int, int, int]]) -> Capture:
    """Give a group of the first process other edges."""
    from foundry.model.tables import EDGE, sorted_edges

    groups = list(capture.processes[0].groups)
    groups[group] = replace(groups[group], edges=sorted_edges(np.array(edges, EDGE)))
    return with_fields(capture, groups=tuple(groups))


def body_with_edges(capture: Capture, count: int) -> int:
    """The group of the first process that has that many edges."""
    return next(index for index, group in enumerate(capture.processes[0].groups) if len(group.edges) == count)
