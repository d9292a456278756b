"""A small capture in which every view of `inspect` has something to show."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import replace
from pathlib import Path

from helpers.spool_writer import (
    ARENA,
    BASE,
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

from foundry.model import Capture, File
from foundry.pack import pack

GRAPH = BASE + 2 * ARENA
SCRATCH = BASE + ARENA
TABLE = 0x7F1200000000
STACK, HEAP = 0x7FFC12345678, 0x55D0AABBCCDD

FILL = "_ZN2at6native29vectorized_elementwise_kernelILi8ENS0_11FillFunctorIN3c108BFloat16EEESt5arrayIPcLm1EEEEviT0_T1_"
MATRIX = "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"
CLUSTER = (4, struct.pack("<III", 2, 1, 1))
PROGRAMMATIC = 1 | 1 << 16


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def _rank_0(session: Path) -> None:
    spool = SpoolWriter(session, "rank-0")
    spool.driver(13000, simulated=False)
    spool.device(0, BASE, ARENA)
    spool.context(0xC0)
    for number in range(3):
        spool.allocation(BASE + number * 0x100000, 0x100000, 0, number)
    spool.allocation(BASE + 0x300000, 1000, 0, 3)
    spool.free(BASE + 0x300000)
    spool.phase(True, 1, "warm-up")
    spool.allocation(SCRATCH, 4096, 1, 0)
    spool.phase(False, 1, "warm-up")
    spool.allocation(GRAPH, 0x4000, 2, 0)
    spool.image(0x10, b"\x7fELF" + b"fill" * 20, bytes(range(32)), form=1, provenance="/opt/libtorch_cuda.so")
    spool.image(0x11, b"\x7fELF" + b"matrix" * 9, bytes(range(1, 33)), form=1, api=1, provenance="")
    spool.range(7, TABLE, 256, 0x11, "_ZN6cublas5tableE")
    spool.range(1, STACK - 0x1000, 64)
    spool.kernel(0x7000, 0x10, FILL, [(0, 4), (4, 4), (8, 8)], [(8, 0), (9, -1)])
    spool.kernel(0x7001, 0x11, MATRIX, [(0, 40), (48, 8)], [(8, 164308), (14, 1)])
    spool.event(0xE0, 2)
    spool.event(0xE1, 2)
    fill = kernel_node(0x7000, words(0x400000003, GRAPH + 0x200), (4, 1, 1), (128, 1, 1), 0, 0xC0, [(8, b"")])
    for number, key in enumerate(("8", "4")):
        matrix = kernel_node(
            0x7001,
            words(BASE + 0x100000, STACK, 0, HEAP, 7, 0, BASE + 0x2000 + number * 512),
            (32 >> number, 2, 1),
            (384, 1, 1),
            1024,
            0xC0,
            [CLUSTER, (8, b"")],
        )
        layer = [fill, matrix, fill, matrix]
        nodes = [
            memset_node(GRAPH, 0xFF, 64),
            *layer,
            *layer,
            copy_node(copy_bytes(GRAPH, BASE + 0x200000, 256), 0xC0),
            child_node(body([fill, event_node(0xE0 + number)])),
            empty_node(),
        ]
        last = len(nodes) - 1
        edges = [(at, at + 1, PROGRAMMATIC if at in (1, 5) else 0) for at in range(last - 2)]
        edges += [(last - 3, last - 1, 0), (last - 2, last, 0), (last - 1, last, 0)]
        spool.graph(0x900 + number, body(nodes, edges), ("decode", key), 0xC0, 0, 9)
        spool.metadata(("decode", key), f'{{"batch": {key}}}')
        spool.event_gone(0xE0 + number)
        spool.launched(0x900 + number)
    foreign = kernel_node(0x7000, words(1, TABLE + 16), (1, 1, 1), (32, 1, 1), 0, 0xC0)
    spool.graph(0x910, body([fill, foreign]), ("prefill", "8"), 0xC0)
    scratch = kernel_node(0x7000, words(1, SCRATCH + 8), (1, 1, 1), (32, 1, 1), 0, 0xC0)
    spool.graph(0x911, body([scratch]), ("prefill", "16"), 0xC0)
    stale = kernel_node(0x7000, words(1, BASE + 0x300010), (1, 1, 1), (32, 1, 1), 0, 0xC0)
    spool.graph(0x912, body([refused_node(3, "a host function"), stale]), ("", ""), 0xC0)
    spool.contents(GRAPH, bytes(64))
    spool.counters(launches=5, graphs_blocked_ns=3_289_252_245, at_init_ns=1_500_000_000, at_commit_ns=9_250_000_000)
    spool.commit()
    spool.end()
    spool.write()


def _rank_1(session: Path) -> None:
    spool = SpoolWriter(session, "rank-1")
    spool.driver(13000, simulated=False)
    spool.device(0, BASE, ARENA)
    spool.context(0xC0)
    spool.allocation(BASE, 0x100000)
    spool.graph(0x900, body([memset_node(BASE)]), ("decode", "8"), 0xC0)
    spool.write()


def showcase(processes: int = 1) -> Capture:
    """Pack the capture; with two processes, the second has one graph of the same name."""
    with tempfile.TemporaryDirectory() as folder:
        _rank_0(Path(folder))
        if processes > 1:
            _rank_1(Path(folder))
        context = {"argv": '["python", "serve.py", "--model", "a model"]', "foundry": "0.1.0"}
        capture, _ = pack(Path(folder), context=context, all_kernels=True)
    blobs = (*capture.blobs, b"cubin" * 9, b"{}")
    files = tuple(
        File("triton", f"ab/{name}", mode, len(capture.blobs) + index)
        for index, (name, mode) in enumerate([("kernel.cubin", 0o644), ("kernel.json", 0o600)])
    )
    return replace(capture, blobs=blobs, files=files, packages={"torch": "2.11.0", "numpy": "2.4.6"})
