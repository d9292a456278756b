"""A process to pack, and what the packer makes of it."""

from __future__ import annotations

import struct
from pathlib import Path

from helpers.spool_writer import SpoolWriter, body, kernel_node

from foundry import archive
from foundry.model import Graph, Process
from foundry.pack import pack

BASE, ARENA = 0x400000000000, 1 << 38
SCRATCH, GRAPH = BASE + ARENA, BASE + 2 * ARENA
IMAGE = b"SIMULATED IMAGE " * 4


def start(session: Path, role: str = "python-0") -> SpoolWriter:
    """A process with a device, memory in each arena, an image and a kernel of one pointer and one int."""
    spool = SpoolWriter(session, role)
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.allocation(BASE, 4096, 0, 0)
    spool.allocation(SCRATCH, 4096, 1, 0)
    spool.allocation(GRAPH, 4096, 2, 0)
    spool.image(0x10, IMAGE, bytes(32))
    spool.kernel(0x77, 0x10, "scale", [(0, 8), (8, 4)])
    return spool


def scale(address: int, kernel: int = 0x77, **options: object) -> bytes:
    return kernel_node(kernel, struct.pack("<QI", address, 3), **options)  # type: ignore[arg-type]


def packed(spool: SpoolWriter, **options: bool) -> tuple[Process, list[str]]:
    capture, findings = pack(spool.write(), **options)
    archive.write(capture, spool.folder.parent.with_suffix(".fdry"), force=True)
    return capture.processes[0], [finding.code for finding in findings if not finding.code.startswith("spool-no")]


def one_graph(spool: SpoolWriter, *nodes: bytes, **options: int) -> Graph:
    spool.graph(0x90, body(nodes), **options)  # type: ignore[arg-type]
    return packed(spool)[0].graphs[0]
