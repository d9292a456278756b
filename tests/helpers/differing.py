"""Captures to compare: one with a bit of everything, at any base, and what `examine` says of two."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
    refused_node,
)

from foundry.archive.heads import Head, head_of
from foundry.diff.captures import examine_archives
from foundry.diff.report import Report
from foundry.findings import Finding, Severity
from foundry.model import Capture, File, Library, Process
from foundry.pack import pack

BASE, OTHER_BASE, ARENA = 0x400000000000, 0x200000000000, 1 << 38
IMAGES = (b"SIMULATED IMAGE " * 4, b"ANOTHER IMAGE OF KERNELS " * 3)
PACKED = 28672 << 32 | 4
"""Two numbers side by side that have the upper half of an address."""


@dataclass(frozen=True)
class Given:
    """A capture that stands for an open archive, so that it need not be sound."""

    capture: Capture
    capture_id: str

    @property
    def head(self) -> Head:
        return head_of(self.capture)

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(process.role for process in self.capture.processes)

    def process(self, index: int) -> Process:
        return self.capture.processes[index]

    def blob(self, index: int) -> bytes:
        return self.capture.blobs[index]


def examined(before: Capture, after: Capture) -> Report:
    """What `foundry diff` finds, even if both are alike."""
    return examine_archives(Given(before, "a"), Given(after, "b"))


def sample(
    base: int = BASE,
    *,
    words: Sequence[int] = (0, 0),
    constant: int = 3,
    first_bytes: int = 4096,
    role: str = "python-0",
) -> Capture:
    """Pack a program of two graphs. Each kernel of the last three takes a pointer, a constant and the words."""
    with tempfile.TemporaryDirectory() as folder:
        spool = SpoolWriter(Path(folder), role)
        _write(spool, base, list(words), constant, first_bytes)
        capture, _ = pack(spool.write(), context={"argv": '["python3", "serve.py"]', "CUDA_MODULE_LOADING": "LAZY"})
    blobs = (*capture.blobs, b"a cached file")
    return replace(
        capture,
        blobs=blobs,
        files=(File("triton", "ab/kernel.cubin", 0o600, len(blobs) - 1),),
        packages={"torch": "2.11.0"},
        findings=(Finding("capture-failed", Severity.WARN, "text", role),),
        processes=tuple(
            replace(process, libraries=(Library("libcublas.so.13", "ab12", "nvidia-cublas", "13.1"),))
            for process in capture.processes
        ),
    )


def _write(spool: SpoolWriter, base: int, words: list[int], constant: int, first_bytes: int) -> None:
    graph_arena = base + 2 * ARENA
    spool.driver()
    spool.device(base=base)
    spool.context(0xC0)
    spool.context(0xC1, 0, False, 1)
    spool.phase(True, 1, "warm-up")
    spool.allocation(base, first_bytes, 0, 0)
    spool.allocation(base + ARENA, 4096, 1, 0)
    spool.phase(False, 1, "warm-up")
    spool.allocation(base + 8192, 4096, 0, 1)
    spool.range(7, 0x7F0000000000, 64, 0x10, "table")
    spool.image(0x10, IMAGES[0], bytes(32))
    spool.image(0x11, IMAGES[1], b"\1" * 32, provenance="")
    spool.kernel(0x77, 0x10, "scale", [(0, 8), (8, 4)], [(8, 1024)])
    size = 16 + 8 * len(words)
    spool.kernel(0x78, 0x11, "_ZN2at6native9mix_arrayIfEEvPT_i", [(0, 8), (8, 4), (16, size - 16)])
    spool.event(0xE0, 2)
    for number, batch in enumerate((8, 1)):
        output = graph_arena + number * 8192
        spool.allocation(output, 4096, 2, number)
        mixed = struct.pack("<QI4x", output + 64, constant) + struct.pack(f"<{len(words)}Q", *words)
        nodes = [
            kernel_node(
                0x77, struct.pack("<QI", base + 8192, batch), (batch, 1, 1), context=0xC0, attributes=[(8, b"\1")]
            ),
            memset_node(output, 7, 32),
            copy_node(copy_bytes(base + 8192, output, 64)),
            event_node(0xE0),
            *(kernel_node(0x78, mixed, (4, 1, 1), context=0xC0) for _ in range(3)),
            empty_node(),
        ]
        if number:
            nodes.append(child_node(body([kernel_node(0x77, struct.pack("<QI", output, 5), context=0xC0)])))
            nodes.append(refused_node(3, "a host function"))
        label = ("decode", str(batch))
        spool.graph(0x900 + number, body(nodes), label, context=0xC0)
        spool.metadata(label, f"batch {batch}")
        spool.launched(0x900 + number)
    spool.contents(base + 8192, b"contents of memory")
    spool.counters(launches=2)
    spool.commit()
    spool.end()
