"""A seeded capture like that of a torch decode job: graphs of hundreds of nodes, pointers, noise in the parameters."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from pathlib import Path

from helpers.spool_writer import ARENA, BASE, SpoolWriter, body, kernel_node, memset_node


@dataclass
class Shape:
    """How large the capture is."""

    graphs: int = 35
    layers: int = 28
    kernels_per_layer: int = 26
    kernels: int = 120
    parameter_words: int = 72
    images: int = 100
    image_bytes: int = 300_000
    seed: int = 1


@dataclass
class KernelShape:
    handle: int
    words: list[str]
    constants: list[int]


def noise_pool(rng: random.Random) -> list[int]:
    """Addresses that a process's stack and heap would leave behind."""
    stack = 0x7FFC00000000 + rng.randrange(1 << 32) // 16 * 16
    heap = 0x550000000000 + rng.randrange(1 << 40) // 4096 * 4096
    library = 0x7F0000000000 + rng.randrange(1 << 38) // 4096 * 4096
    return (
        [stack + rng.randrange(0, 1 << 14, 8) for _ in range(500)]
        + [heap + rng.randrange(0, 1 << 28, 16) for _ in range(2000)]
        + [library + rng.randrange(0, 1 << 21) for _ in range(150)]
    )


def cubin_like(rng: random.Random, size: int) -> bytes:
    """Bytes about as compressible as machine code: 16-byte instructions from a vocabulary, with some free bits."""
    words = [rng.randbytes(12) for _ in range(400)]
    return b"\x7fELF" + b"".join(rng.choice(words) + rng.randrange(64).to_bytes(4, "little") for _ in range(size // 16))


def make_spool(session: Path, shape: Shape) -> Path:
    """Write the spool of such a job and return the session folder."""
    rng = random.Random(shape.seed)
    spool = SpoolWriter(session)
    spool.driver(simulated=False)
    spool.device(base=BASE, arena_size=ARENA)
    spool.context(0x55AA00)
    weights = []
    for number in range(shape.layers * 6 + 20):
        address = BASE + number * (24 << 20)
        spool.allocation(address, 24 << 20, 0, number)
        weights.append(address)
    for number in range(shape.images):
        data = cubin_like(rng, shape.image_bytes)
        spool.image(0x1000 + number, data, rng.randbytes(32), form=1, provenance="")
    kernels = []
    for number in range(shape.kernels):
        count = rng.randrange(shape.parameter_words // 8, shape.parameter_words * 2 - shape.parameter_words // 8)
        words = rng.choices(
            ["constant", "zero", "pointer", "noise", "sometimes", "batch"], [40, 20, 4, 22, 6, 4], k=count
        )
        words[0] = "pointer"
        handle = 0x7FAA0000 + number * 64
        spool.kernel(
            handle, 0x1000 + number % shape.images, f"_ZN2at6native{number}kernelIfEEvT_", [(0, count * 8)], [(8, 0)]
        )
        kernels.append(KernelShape(handle, words, [rng.randrange(1 << 20) for _ in range(count)]))
    pool = noise_pool(rng)
    plan = [[rng.randrange(shape.kernels) for _ in range(shape.kernels_per_layer)]]
    next_address = BASE + 2 * ARENA
    for graph in range(shape.graphs):
        batch = 8 * graph + 1
        activations = next_address
        spool.allocation(activations, 32 << 20, 2, graph)
        next_address += 32 << 20
        order = list(plan[0])
        for at in (3, 9, 15, 21):
            order[at % len(order)] = (order[at % len(order)] + graph * 7 + at) % shape.kernels
        spots = {}
        nodes = []
        for layer in range(shape.layers):
            for position, which in enumerate(order):
                kernel = kernels[which]
                words = []
                for column, kind in enumerate(kernel.words):
                    if kind == "constant":
                        words.append(kernel.constants[column])
                    elif kind == "zero":
                        words.append(0)
                    elif kind == "batch":
                        words.append(batch * kernel.constants[column])
                    elif kind == "pointer":
                        if column % 3 == 0:
                            words.append(weights[(layer * 6 + column + position) % len(weights)])
                        else:
                            words.append(activations + (position * 4099 + column * 17) % 8000 * 4096)
                    elif kind == "noise":
                        spot = spots.setdefault((position, column), rng.choice(pool))
                        words.append(spot if rng.random() < 0.7 else rng.choice(pool))
                    else:
                        words.append(rng.choice(pool) if rng.random() < 0.2 else 0)
                nodes.append(
                    kernel_node(
                        kernel.handle,
                        struct.pack(f"<{len(words)}Q", *words),
                        (batch * (1 + column % 3), 1, 1),
                        (128, 1, 1),
                        0,
                        0x55AA00,
                        [(1, b""), (5, b"\1")],
                    )
                )
        nodes.append(memset_node(activations + 4096))
        execution = 0x9000 + graph * 16
        label = ("decode", str(batch))
        spool.graph(execution, body(nodes), label, context=0x55AA00)
        spool.metadata(label, f'{{"batch":{batch}}}')
        spool.launched(execution)
    spool.commit()
    spool.counters(launches=shape.graphs)
    spool.end()
    return spool.write()
