"""Archives for the tests of the report page: one with a bit of everything, and one whose names try to break out."""

from __future__ import annotations

import json
import random
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

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

from foundry import archive
from foundry.model import File
from foundry.pack import pack

MIB = 1 << 20
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
NAMES = (
    "_ZN2at6native29vectorized_elementwise_kernelILi8ENS0_15CUDAFunctor_addIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_",
    "nvjet_sm90_tst_128x64_64x8_1x2_h_bz_TNT",
    "triton_poi_fused_add_rsqrt_0",
    "flash_fwd_splitkv_kernel",
    "rms_norm",
    "rotary_embedding",
    "silu_and_mul",
    "reshape_and_cache",
)
MOMENTS = {
    "at_driver_begin_ns": 1_912_000_000,
    "at_driver_end_ns": 2_205_000_000,
    "at_first_context_ns": 2_391_000_000,
    "at_first_image_ns": 2_480_000_000,
    "at_first_capture_ns": 5_902_000_000,
    "at_first_graph_ns": 6_480_000_000,
    "at_last_graph_ns": 11_930_000_000,
    "at_commit_ns": 12_044_000_000,
}


def rich_archive(folder: Path, names: tuple[str, ...] = NAMES, label: str = "decode", processes: int = 1) -> Path:
    """Write an archive with branches, child graphs, refused nodes, small pages, holes, findings and moments."""
    for number in range(processes):
        _spool(folder / "spool", f"rank-{number}", names, label)
    context = {"argv": json.dumps(["python", "serve.py", f"--model={label}"]), "torch": "2.11.0", "foundry": "0.1.0"}
    capture, _ = pack(folder / "spool", context=context)
    files = (File("triton", "ab/kernel.cubin", 0o600, len(capture.blobs)),)
    capture = replace(capture, files=files, blobs=(*capture.blobs, bytes(5000)))
    path = folder / "rich.fdry"
    archive.write(capture, path)
    return path


def _spool(session: Path, role: str, names: tuple[str, ...], label: str) -> None:
    spool = SpoolWriter(session, role)
    spool.driver()
    spool.device(base=BASE, arena_size=ARENA)
    spool.context(0xC0)
    rng = random.Random(7)
    at = 0
    for number in range(60):
        size = rng.choice([64, 96, 160, 24]) * MIB
        spool.allocation(BASE + at, size, 0, number)
        at += size
    for number in range(60, 90):
        size = rng.choice([512, 4096, 70_000, 200_000])
        spool.allocation(BASE + at, size, 0, number)
        at += -(-size // 512) * 512
    far = BASE + at + (20 << 30)
    spool.allocation(far, 700 * MIB, 0, 90)
    spool.phase(True)
    for number in range(6):
        spool.allocation(BASE + ARENA + number * 48 * MIB, 40 * MIB, 1, number)
    for number in range(0, 6, 2):
        spool.free(BASE + ARENA + number * 48 * MIB, 1)
    spool.phase(False)
    for number, name in enumerate(names):
        spool.image(0x1000 + number, b"\x7fELF" + rng.randbytes(900 + 400 * number), rng.randbytes(32), form=1)
        spool.kernel(0x7000 + number, 0x1000 + number, name, [(0, 8), (8, 8)], [(8, 0)])
    spool.event(0xE0)
    for number in range(14):
        _graph(spool, number, label, len(names), far)
    spool.counters(launches=14, graphs_blocked_ns=4_941_000_000, **MOMENTS)
    spool.told("disarmed", f"the hook gave up for {label}")
    spool.commit()
    spool.end()
    spool.write()


def _graph(spool: SpoolWriter, number: int, label: str, kernels: int, far: int) -> None:
    scratch = BASE + 2 * ARENA + number * 6 * MIB
    spool.allocation(scratch, 5 * MIB, 2, number)
    words = [struct.pack("<2Q", BASE + step * 64 * MIB, scratch) for step in range(40)]

    def kernel(which: int, word: int) -> bytes:
        return kernel_node(0x7000 + which % kernels, words[word % 40], (8, 1, 1), (128, 1, 1), 0, 0xC0)

    if number < 8:
        nodes = [memset_node(scratch), kernel(0, 1)]
        nodes += [kernel(which + (number > 4), layer) for layer in range(12) for which in range(1, 7)]
        nodes += [kernel(7, 3)]
        graph_body = body(nodes)
    elif number < 12:
        nodes = [kernel(0, 1), *(kernel(2, branch) for branch in range(4)), *(kernel(3, branch) for branch in range(4))]
        nodes += [copy_node(copy_bytes(far, scratch)), event_node(0xE0), empty_node(), kernel(1, 2)]
        edges = [(0, branch, 0) for branch in range(1, 5)] + [(branch, branch + 4, 0) for branch in range(1, 5)]
        edges += [(branch, 9, 0) for branch in range(5, 9)] + [(9, 10, 0), (9, 11, 0), (10, 12, 0), (11, 12, 0)]
        nodes.append(child_node(body([kernel(4, 1), kernel(5, 2), kernel(6, 3)])))
        graph_body = body(nodes, [*edges, (12, 13, 1 << 16)])
    else:
        graph_body = body([kernel(0, 1), refused_node(3, f"a host function of {label}"), kernel(1, 1)])
    name = ("", "") if number == 13 else (label, str(1 << number))
    spool.graph(0x9000 + number * 16, graph_body, name, context=0xC0)


def restore_report(capture_id: str, role: str = "rank-0", reason: str = "memory moved") -> dict[str, Any]:
    """A restore report that fits the archive."""
    moments = {
        "driver_begin": 1.88,
        "driver_end": 2.16,
        "first_context": 2.34,
        "first_asked": 3.05,
        "first_handed": 3.081,
        "last_built": 3.42,
        "commit": 3.3,
    }
    return {
        "report": 1,
        "restored": True,
        "capture_id": capture_id,
        "ready_seconds": 3.54,
        "processes": [
            {
                "role": role,
                "graphs_restored": 11,
                "graphs_given_up": 1,
                "given_up": [{"set": "decode", "key": "1", "reason": reason}],
                "counters": {"launches": 3, "graphs_blocked_ns": 125_280_165},
                "moments": moments,
                "seconds": {"build": 0.106, "kernels": 0.142, "map": 0.0002, "verify": 0.021},
            }
        ],
    }
