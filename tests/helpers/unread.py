"""A program whose kernel takes a pointer, a number and words of which its image says what it does not read."""

from __future__ import annotations

import struct
from pathlib import Path

from helpers.machine_code import simulated_image
from helpers.spool_writer import SpoolWriter, body, kernel_node

from foundry.findings import Finding
from foundry.model import Capture, Range
from foundry.pack import pack

FIRST, SECOND, ARENA = 0x403500000000, 0x203500000000, 1 << 38
PINNED = 0x7F1200000000
WORDS = 4
SIZE = 16 + 8 * WORDS


def mix(unread: str = "") -> bytes:
    """The image: `unread` lists `OFFSET:SIZE` of bytes of the parameters."""
    return simulated_image(f"mix 0 49152 3 0:8 8:4 16:{8 * WORDS}" + (f" unread {unread}" if unread else ""))


def captured(
    folder: Path, *words: int, base: int = FIRST, unread: str = ""
) -> tuple[Capture, list[Finding], dict[str, tuple[Range, ...]]]:
    """Pack a graph `decode` `1` of one launch; `words` fill the last parameter."""
    spool = SpoolWriter(folder, "python-0")
    spool.driver()
    spool.device(base=base)
    spool.context(0xC0)
    spool.allocation(base, 4096, 0, 0)
    spool.allocation(base + 4096, 4096, 0, 1)
    spool.allocation(base + ARENA, 4096, 1, 0)
    spool.allocation(base + 8192, 4096, 0, 2)
    spool.range(1, PINNED, 4096)
    spool.image(0x10, mix(unread), bytes(32))
    spool.kernel(0x77, 0x10, "mix", [(0, 8), (8, 4), (16, 8 * WORDS)])
    block = struct.pack(f"<QI4x{WORDS}Q", base, 3, *words, *[0] * (WORDS - len(words)))
    spool.graph(0x90, body([kernel_node(0x77, block, context=0xC0)]), ("decode", "1"), context=0xC0)
    spool.launched(0x90)
    spool.commit()
    spool.end()
    ranges: dict[str, tuple[Range, ...]] = {}
    capture, findings = pack(spool.write(), ranges=ranges)
    return capture, findings, ranges
