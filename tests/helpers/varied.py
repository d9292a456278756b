"""Small captures with a bit of everything, driven by a random source, for properties and conformance vectors."""

from __future__ import annotations

import random
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

from foundry.model import Capture, File, Library, LibraryPlace
from foundry.pack import pack

PACKAGES = ("torch", "triton", "nvidia-cublas", "vllm")
WORDS = ("", "decode", "größe", "日本", "a b", "x" * 40)


def random_body(rng: random.Random, pool: dict[str, list[int]], depth: int = 0) -> bytes:
    nodes = []
    for _ in range(rng.randrange(0, 6)):
        kind = rng.randrange(10 if depth < 3 else 9)
        if kind < 4 and pool["kernels"]:
            kernel = rng.choice(pool["kernels"])
            count = pool["sizes"][pool["kernels"].index(kernel)]
            words = [rng.choice([0, rng.choice(pool["addresses"]), rng.getrandbits(64)]) for _ in range(count // 8)]
            parameters = struct.pack(f"<{len(words)}Q", *words) + rng.randbytes(count % 8)
            attributes = [
                (number, rng.randbytes(rng.randrange(5))) for number in rng.sample(range(1, 15), rng.randrange(3))
            ]
            grid = [rng.randrange(1, 1 << 20) for _ in range(3)]
            nodes.append(kernel_node(kernel, parameters, grid, (rng.randrange(1, 1024), 1, 1), 0, 0, attributes))
        elif kind == 4:
            nodes.append(memset_node(rng.choice(pool["addresses"]), rng.getrandbits(32), rng.randrange(1, 99)))
        elif kind == 5:
            source, target = rng.choice(pool["addresses"]), rng.choice(pool["addresses"])
            nodes.append(copy_node(copy_bytes(source, target, 64, rng.choice([1, 2, 2, 4]), 2, rng.getrandbits(32))))
        elif kind == 6:
            nodes.append(event_node(rng.choice(pool["events"]), rng.random() < 0.5))
        elif kind == 7:
            nodes.append(empty_node())
        elif kind == 8 and rng.random() < 0.2:
            nodes.append(refused_node(rng.choice([3, 8, 10, 13, 77]), "a host function"))
        elif kind == 9:
            nodes.append(child_node(random_body(rng, pool, depth + 1)))
    pairs = [(start, end) for start in range(len(nodes)) for end in range(start + 1, len(nodes))]
    edges = [(*pair, rng.choice([0, 0, 1 << 16, 0x0100000000000001])) for pair in pairs if rng.random() < 0.5]
    rng.shuffle(edges)
    if not pool["orders"]:
        edges.sort(key=lambda edge: (edge[2].to_bytes(8, "little"), *edge[:2]))
    return body(nodes, edges)


def varied_spool(session: Path, role: str, rng: random.Random, *, orders: bool = True) -> None:
    """Write a spool of one process; `orders`: nodes have their dependencies in orders of their own."""
    spool = SpoolWriter(session, role)
    spool.driver(rng.choice([12080, 13000]), rng.random() < 0.5)
    for ordinal in range(rng.randrange(0, 3)):
        spool.device(ordinal, BASE + ordinal * (1 << 42), ARENA if rng.random() < 0.9 else 0)
        spool.context(0xC0 + ordinal, ordinal, rng.random() < 0.8, ordinal)
    pool: dict[str, list[int]] = {"kernels": [], "sizes": [], "events": [0xE0, 0xE1], "addresses": [BASE, 64]}
    pool["orders"] = [1] * orders
    commits = False
    for step in range(rng.randrange(0, 24)):
        kind = rng.randrange(12)
        if kind < 3:
            arena = rng.choice([0, 0, 1, 2])
            address = BASE + arena * ARENA + rng.randrange(64) * 512
            spool.thread = rng.randrange(3)
            spool.allocation(address, rng.randrange(1, 512), arena, step)
            pool["addresses"].append(address + rng.randrange(600))
        elif kind == 3:
            spool.free(rng.choice(pool["addresses"]) // 512 * 512)
        elif kind == 4:
            spool.range(rng.randrange(1, 9), rng.getrandbits(47), rng.randrange(1, 1 << 20), 0x10, "table")
        elif kind == 5:
            data = rng.choice([rng.randbytes(rng.randrange(64)), b"image" * 10])
            options = [(rng.randrange(20), rng.getrandbits(64))] if rng.random() < 0.3 else []
            spool.image(0x10 + step, data, rng.randbytes(32), rng.choice([1, 2, 3, 4, 5]), 2, 0, options)
            spool.kernel(
                0x7000 + step, 0x10 + step, f"kernel_{rng.choice(WORDS)}", [(0, 8), (8, 4)], [(8, -1), (9, 50)]
            )
            pool["kernels"].append(0x7000 + step)
            pool["sizes"].append(rng.choice([12, 12, 12, 16, 0]))
        elif kind == 6:
            spool.event(rng.choice(pool["events"]), rng.randrange(4))
        elif kind == 7:
            spool.phase(rng.random() < 0.6, rng.choice([1, 2]), rng.choice(WORDS))
        elif kind == 8:
            spool.counters(launches=rng.getrandbits(rng.choice([8, 60])))
            if rng.random() < 0.7:
                spool.counters(graphs_blocked_ns=rng.getrandbits(rng.choice([30, 60])), load_nanoseconds=step)
            spool.commit(step)
            commits = True
        else:
            label = (rng.choice(WORDS), rng.choice(WORDS))
            spool.graph(0x900 + step, random_body(rng, pool), label, 0xC0, rng.randrange(2), rng.getrandbits(3))
            spool.metadata(label, rng.choice(WORDS))
            if rng.random() < 0.5:
                spool.launched(0x900 + step)
            if rng.random() < 0.1:
                spool.exec_changed(0x900 + step, "cuGraphExecUpdate")
    if rng.random() < 0.5:
        spool.contents(BASE + 2 * ARENA, rng.randbytes(rng.randrange(100)))
    if commits:
        spool.commit(0)  # after which nothing is launched: first uses before it have a rank
    spool.event_gone(pool["events"][0])
    if rng.random() < 0.8:
        spool.end()
    spool.write()


def varied_capture(rng: random.Random, processes: int = 2, *, orders: bool = True) -> Capture:
    """Pack a random capture of up to that many processes, with a few cache files."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rng.randrange(1, processes + 1)):
            varied_spool(Path(folder), f"rank-{number}", rng, orders=orders)
        context = {name: rng.choice(WORDS) for name in rng.sample(["argv", "torch", "python"], rng.randrange(3))}
        capture, _ = pack(Path(folder), context=context, all_kernels=rng.random() < 0.5)
    count = rng.randrange(3)
    blobs = (*capture.blobs, *(rng.randbytes(rng.randrange(50)) for _ in range(count)))
    files = tuple(File("triton", f"ab/cd-{index}.cubin", 0o600, len(capture.blobs) + index) for index in range(count))
    processes = tuple(replace(process, libraries=random_libraries(rng)) for process in capture.processes)
    packages = {name: rng.choice(("", "2.11.0", "1.0+größe")) for name in rng.sample(PACKAGES, rng.randrange(3))}
    return replace(capture, processes=processes, blobs=blobs, files=files, packages=packages)


def random_libraries(rng: random.Random) -> tuple[Library, ...]:
    """Make a few library files, as a process lists them."""
    found = set()
    for _ in range(rng.randrange(4)):
        build_id = rng.choice(("", rng.randbytes(rng.choice((1, 20, 64))).hex()))
        package = rng.choice((("", ""), (rng.choice(PACKAGES), "13.0.1")))
        found.add(Library(rng.choice(("libcublasLt.so.13", "größe.so", ".so", "a\nb")), build_id, *package))
    return tuple(sorted(found))


def thinned(capture: Capture, rng: random.Random) -> Capture:
    """Let some of its blobs lie in library files."""
    outside = {}
    for index, blob in enumerate(capture.blobs):
        if blob and rng.random() < 0.5:
            architecture = rng.choice((0, 90, 103))
            size = rng.randrange(1, 1 << 30) if architecture else len(blob)
            offset = rng.choice((0, rng.randrange(1 << 30), (1 << 53) - size))
            build_id = rng.randbytes(rng.choice((1, 20))).hex()
            outside[index] = LibraryPlace("libkernels.so", build_id, offset, size, architecture)
    return replace(capture, outside=outside)
