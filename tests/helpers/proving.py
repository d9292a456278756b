"""Two captures of a small program whose memory lies elsewhere in the second, with whatever a test changes in it."""

from __future__ import annotations

import json
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from helpers.spool_writer import SpoolWriter, body, child_node, copy_bytes, copy_node, kernel_node, memset_node

from foundry.model import Capture, Range
from foundry.pack import pack
from foundry.proof import Outcome, prove

FIRST, SECOND, ARENA = 0x403500000000, 0x203500000000, 1 << 38
PINNED = 0x7F1200000000
STACK = 0x7FFD00000000
WORDS = 6
"""Words of the struct that the kernel takes beside a pointer and a number."""


@dataclass
class Program:
    """One run. Offsets are in the struct of `words`; `packed` writes 8 bytes at any offset in it."""

    base: int
    seed: int = 0
    words: tuple[int, ...] = (0,) * WORDS
    packed: tuple[tuple[int, int], ...] = ()
    grid: int = 4
    kernel: str = "mix"
    attribute: bytes = b"\1"
    target: int | None = None
    copied: int | None = None
    filled: int = 7
    first_bytes: int = 4096
    extra: bool = False
    metadata: str | None = None
    contents: bytes = b""
    nodes: int = 1
    second_graph: bool = True
    role: str = "python-0"
    edges: tuple[tuple[int, int, int], ...] = ()

    @property
    def main(self) -> int:
        """The second allocation of the main arena."""
        return self.base + 8192

    @property
    def graph(self) -> int:
        """The allocation of the graph arena."""
        return self.base + 2 * ARENA

    def captured(self) -> tuple[Capture, dict[str, tuple[Range, ...]]]:
        """Pack it."""
        ranges: dict[str, tuple[Range, ...]] = {}
        with tempfile.TemporaryDirectory() as folder:
            spool = SpoolWriter(Path(folder), self.role)
            self._write(spool)
            return pack(spool.write(), ranges=ranges)[0], ranges

    def _write(self, spool: SpoolWriter) -> None:
        spool.driver()
        spool.device(base=self.base)
        spool.context(0xC0)
        spool.allocation(self.base, self.first_bytes, 0, 0)
        spool.allocation(self.main, 4096, 0, 1)
        if self.extra:
            spool.thread = 2
            spool.allocation(self.base + 16384, 512, 0, 2)
            spool.thread = 0
        spool.allocation(self.graph, 4096, 2, 0)
        spool.allocation(self.base + 65536, 4096, 0, 2 + self.extra)
        spool.free(self.base + 65536)
        spool.range(1, PINNED + self.seed * 4096, 4096)
        spool.image(0x10, b"SIMULATED IMAGE " * 4, bytes(32))
        spool.kernel(0x77, 0x10, self.kernel, [(0, 8), (8, 4), (16, 8 * WORDS)])
        struct_bytes = bytearray(struct.pack(f"<{WORDS}Q", *self.words))
        for offset, value in self.packed:
            struct_bytes[offset : offset + 8] = struct.pack("<Q", value)
        block = struct.pack("<QI4x", self.graph + 64, 3) + bytes(struct_bytes)
        launch = kernel_node(0x77, block, (self.grid, 1, 1), context=0xC0, attributes=[(8, self.attribute)])
        nodes = [
            *[launch] * self.nodes,
            memset_node(self.graph if self.target is None else self.target, self.filled, 32),
            copy_node(copy_bytes(self.main if self.copied is None else self.copied, self.graph, 64)),
            child_node(body([launch])),
        ]
        spool.graph(0x900, body(nodes, list(self.edges)), ("decode", "1"), context=0xC0)
        text = json.dumps({"inputs": [self.main], "n": 5}) if self.metadata is None else self.metadata
        spool.metadata(("decode", "1"), text)
        if self.second_graph:
            still = struct.pack("<QI4x", self.main, 3) + bytes(8 * WORDS)
            spool.graph(0x902, body([kernel_node(0x77, still, (1, 1, 1), context=0xC0)]), ("decode", "2"), context=0xC0)
        if self.contents:
            spool.contents(self.graph, self.contents)
        spool.commit()
        spool.end()


def proved(first: dict[str, object], second: dict[str, object], base: int = SECOND) -> Outcome:
    """Compare two runs, given what is changed in each."""
    sides = [Program(FIRST, **first), Program(base, 1, **second)]  # type: ignore[arg-type]
    (one, known), (other, others) = (side.captured() for side in sides)
    return prove(one, other, (known, others))
