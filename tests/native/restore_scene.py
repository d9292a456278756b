"""A small restore image on the simulated device, and the program commands that fit it."""

from __future__ import annotations

import hashlib
import struct

from native.restore_image_file import NONE, ImageFile

BASE = 0x400000000000
ARENA = 278 << 30
GRAPH_ARENA = BASE + 2 * ARENA
MEMORY = 64 << 20
KERNEL, COPY, SET, CHILD, EMPTY, WAIT, RECORD = 0, 1, 2, 4, 5, 6, 7
MODULE, LIBRARY = 1, 2
PLAIN = bytes(8)
START = ["init", "context"]

Node = dict[str, object]
Edge = tuple[int, int, bytes]


class Scene:
    """One device, an allocation of the program's (4,096 bytes at BASE), a restored one full of 100s, a kernel image."""

    def __init__(self, kernels: bytes, *, api: int = LIBRARY, context: int = NONE, **device: object) -> None:
        self.file = ImageFile()
        self.kernels_bytes = kernels
        self.context = context
        self.file.device(
            **{
                "name": "NVIDIA Simulated H200",
                "major": 9,
                "minor": 0,
                "processors": 132,
                "memory": MEMORY,
                "base": BASE,
                "arena": ARENA,
                **device,
            }
        )
        self.made = self.file.allocation(BASE, 4096)
        self.file.log(BASE, 4096)
        self.restored = self.file.allocation(GRAPH_ARENA, 4096, arena=2, restored=1)
        contents = self.file.blob(struct.pack("<I", 100) * 1024)
        self.file.mapping(GRAPH_ARENA, 2 << 20, contents=contents)
        self.key = hashlib.sha256(kernels).digest()
        self.image = self.file.image(self.key, self.file.blob(kernels), api=api)
        self.fill = self.file.kernel(self.image, "fill", [(0, 8), (8, 4), (12, 4)])
        self.add = self.file.kernel(self.image, "add", [(0, 8), (8, 8), (16, 4)])
        self.add_bias = self.file.kernel(self.image, "add_bias", [(0, 8), (8, 4)])
        self.pair: int | None = None
        self.places: list[tuple[str, int]] = []

    def fill_record(self, address: int, value: int, count: int = 4) -> int:
        """Add the values of a `fill` node."""
        return self.file.kernel_record((1, 1, 1), (32, 1, 1), struct.pack("<QII", address, value, count))

    def add_record(self, target: int, source: int, count: int = 4) -> int:
        """Add the values of an `add` node."""
        return self.file.kernel_record((1, 1, 1), (32, 1, 1), struct.pack("<QQI", target, source, count))

    def add_pair(self, key: str, value: int, **graph: object) -> int:
        """Add the graph `fill(BASE, value); add(BASE, GRAPH_ARENA)`: the program's memory then holds value + 100."""
        if self.pair is None:
            self.pair = self.file.group(
                [{"type": KERNEL, "kernel": self.fill}, {"type": KERNEL, "kernel": self.add}], [(0, 1, PLAIN)]
            )
        first = self.fill_record(BASE, value)
        self.add_record(BASE, GRAPH_ARENA)
        return self.add_graph(self.pair, first, key, **graph)

    def add_graph(self, group: int, first: int, key: str, **graph: object) -> int:
        """Add a graph that refers to both allocations."""
        return self.file.graph(
            group,
            first,
            **{"key": key, "references": (self.made, self.restored), "context": self.context, **graph},
        )


def copy_record(target: int, source: int, size: int) -> bytes:
    """Build a CUDA_MEMCPY3D of device memory, one row."""

    def side(address: int) -> bytes:
        # x, y, z, lod, memory type (device) and padding, host, device, array, reserved, pitch, height
        return struct.pack("<QQQQI4xQQQQQQ", 0, 0, 0, 0, 2, 0, address, 0, 0, size, 1)

    copy = side(source) + side(target) + struct.pack("<QQQ", size, 1, 1)
    assert len(copy) == 200, len(copy)
    return copy


def read_back(key: str) -> list[str]:
    """List the commands that launch a graph and read the program's memory after it."""
    return [f"wait:decode:{key}", f"launch:decode:{key}", "sync", f"read:{BASE}:4"]
