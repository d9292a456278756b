"""Writes spools as the hook does, frame by frame, for tests of everything behind them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from foundry.model.checksum import crc32c

BASE = 0x400000000000
ARENA = 1 << 38
"""The first device's range in captures made by hand."""


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def items(values: Iterable[bytes]) -> bytes:
    listed = list(values)
    return struct.pack("<I", len(listed)) + b"".join(listed)


def kernel_node(
    kernel: int,
    parameters: bytes = b"",
    grid: Sequence[int] = (1, 1, 1),
    block: Sequence[int] = (32, 1, 1),
    shared: int = 0,
    context: int = 0,
    attributes: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    return (
        struct.pack("<IIQ7IQ", 0, 0, kernel, *grid, *block, shared, context)
        + text(parameters)
        + items(struct.pack("<I", number) + text(value) for number, value in attributes)
    )


def memset_node(
    destination: int, value: int = 0, width: int = 4, height: int = 1, pitch: int = 0, element_size: int = 4
) -> bytes:
    return struct.pack("<IIQQIIQQQ", 2, 0, destination, pitch, value, element_size, width, height, 0)


def copy_bytes(
    source: int, destination: int, width: int = 64, source_type: int = 2, destination_type: int = 2, junk: int = 0
) -> bytes:
    """A CUDA_MEMCPY3D; junk fills the fields that the memory types leave without meaning."""
    side = struct.Struct("<QQQQIIQQQQQQ")
    assert side.size == 88
    begin = side.pack(
        0, 0, 0, 0, source_type, junk & 0xFFFFFFFF, source if source_type == 1 else junk, source, junk, junk, 0, 1
    )
    end = side.pack(
        0,
        0,
        0,
        0,
        destination_type,
        junk & 0xFFFFFFFF,
        destination if destination_type == 1 else junk,
        destination,
        junk,
        junk,
        0,
        1,
    )
    return begin + end + struct.pack("<QQQ", width, 1, 1)


def copy_node(copy: bytes, context: int = 0) -> bytes:
    return struct.pack("<II", 1, 0) + text(copy) + struct.pack("<Q", context)


def event_node(event: int, record: bool = True) -> bytes:
    return struct.pack("<IIQ", 7 if record else 6, 0, event)


def empty_node() -> bytes:
    return struct.pack("<II", 5, 0)


def refused_node(kind: int, reason: str) -> bytes:
    return struct.pack("<I", kind) + text(reason)


def child_node(body: bytes) -> bytes:
    return struct.pack("<II", 4, 0) + body


def body(nodes: Sequence[bytes], edges: Sequence[tuple[int, int, int]] | None = None) -> bytes:
    """Nodes and edges; without edges given the nodes form a chain."""
    if edges is None:
        edges = [(at, at + 1, 0) for at in range(len(nodes) - 1)]
    return items(nodes) + items(struct.pack("<IIQ", *edge) for edge in edges)


class SpoolWriter:
    """One process folder."""

    def __init__(self, session: Path, role: str = "python-0", abi: int = 7, mode: int = 1) -> None:
        self.folder = session / role
        self.folder.mkdir(parents=True)
        self.frames: list[bytes] = []
        self.blobs = 0
        self.thread = 0
        self.frame(
            1, struct.pack("<II", abi, mode) + text(role) + text("/usr/bin/python3") + items([text("RANK") + text("0")])
        )

    def frame(self, kind: int, payload: bytes = b"") -> None:
        self.frames.append(struct.pack("<HHIQ", kind, self.thread, crc32c(payload), len(payload)) + payload)

    def blob(self, data: bytes) -> int:
        (self.folder / f"blob.{self.blobs}").write_bytes(data)
        self.blobs += 1
        return self.blobs - 1

    def driver(self, version: int = 13000, simulated: bool = True) -> None:
        self.frame(2, struct.pack("<II", version, simulated) + text("/usr/lib/libcuda.so.1"))

    def device(
        self, ordinal: int = 0, base: int = 0x400000000000, arena_size: int = 1 << 38, compute: int = 90
    ) -> None:
        self.frame(
            3,
            struct.pack("<I", ordinal)
            + text("NVIDIA H200")
            + bytes(range(16))
            + struct.pack("<IIIQIQQ", compute // 10, compute % 10, 132, 150 << 30, 1, base, arena_size),
        )

    def libraries(self, *files: tuple[str, str]) -> None:
        self.frame(5, items(text(path) + text(build_id) for path, build_id in files))

    def context(self, handle: int, device: int = 0, primary: bool = True, ordinal: int = 0) -> None:
        self.frame(4, struct.pack("<QIII", handle, device, primary, ordinal))

    def allocation(
        self, address: int, size: int, arena: int = 0, ordinal: int = 0, taken: int = 0, device: int = 0
    ) -> None:
        taken = taken or -(-size // 512) * 512
        self.frame(10, struct.pack("<QQQIBBQ", address, size, taken, device, arena, 0, ordinal))

    def free(self, address: int, arena: int = 0, device: int = 0) -> None:
        self.frame(11, struct.pack("<QIB", address, device, arena))

    def range(self, kind: int, address: int, size: int, owner: int = 0, name: str = "") -> None:
        self.frame(12, struct.pack("<BQQQ", kind, address, size, owner) + text(name))

    def range_gone(self, kind: int, address: int) -> None:
        self.frame(13, struct.pack("<BQ", kind, address))

    def contents(self, address: int, data: bytes) -> None:
        self.frame(14, struct.pack("<QQI", address, len(data), self.blob(data)) + text(""))

    def no_contents(self, address: int, size: int, code: str) -> None:
        self.frame(14, struct.pack("<QQI", address, size, 0xFFFFFFFF) + text(code))

    def allocator(self, thread: int, *, ended: bool = False, before: int = 0) -> None:
        self.frame(15, struct.pack("<HBQ", thread, ended, before))

    def image(
        self,
        handle: int,
        data: bytes,
        key: bytes,
        form: int = 4,
        api: int = 2,
        context: int = 0,
        options: Sequence[tuple[int, int]] = (),
        provenance: str = "/usr/lib/libkernels.so",
        blob: int | None = None,
    ) -> int:
        number = self.blob(data) if blob is None else blob
        self.frame(
            20,
            struct.pack("<QBBIQ", handle, api, form, number, len(data))
            + key
            + struct.pack("<Q", context)
            + items(struct.pack("<IQ", *option) for option in options)
            + text(provenance)
            + text("ab12")
            + struct.pack("<Q", 4096),
        )
        return number

    def image_gone(self, handle: int) -> None:
        self.frame(22, struct.pack("<Q", handle))

    def image_restored(self, handle: int, instance: int) -> None:
        self.frame(23, struct.pack("<QI", handle, instance))

    def kernel(
        self,
        handle: int,
        image: int,
        name: str,
        parameters: Sequence[tuple[int, int]] = (),
        attributes: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.frame(
            30,
            struct.pack("<QQ", handle, image)
            + text(name)
            + items(struct.pack("<II", *parameter) for parameter in parameters)
            + items(struct.pack("<Ii", *attribute) for attribute in attributes),
        )

    def graph(
        self,
        execution: int,
        graph_body: bytes,
        label: tuple[str, str] = ("", ""),
        context: int = 0,
        device: int = 0,
        flags: int = 0,
    ) -> None:
        self.frame(
            40,
            struct.pack("<QQQIQB", execution + 1, execution, flags, device, context, 1)
            + text(label[0])
            + text(label[1])
            + graph_body,
        )

    def metadata(self, label: tuple[str, str], value: str) -> None:
        self.frame(41, text(label[0]) + text(label[1]) + text(value))

    def exec_gone(self, execution: int) -> None:
        self.frame(42, struct.pack("<Q", execution))

    def exec_changed(self, execution: int, how: str) -> None:
        self.frame(43, struct.pack("<Q", execution) + text(how))

    def event(self, handle: int, flags: int = 0) -> None:
        self.frame(44, struct.pack("<QI", handle, flags))

    def event_gone(self, handle: int) -> None:
        self.frame(47, struct.pack("<Q", handle))

    def launched(self, execution: int) -> None:
        self.frame(46, struct.pack("<Q", execution))

    def phase(self, begin: bool, kind: int = 1, name: str = "warm-up") -> None:
        self.frame(50, struct.pack("<BB", begin, kind) + text(name))

    def counters(self, **values: int) -> None:
        self.frame(51, items(text(name) + struct.pack("<Q", value) for name, value in values.items()))

    def told(self, code: str, words: str) -> None:
        self.frame(52, text(code) + text(words))

    def restored(self, label: tuple[str, str], state: int, reason: str = "") -> None:
        self.frame(60, text(label[0]) + text(label[1]) + bytes([state]) + text(reason) + bytes(8))

    def commit(self, ordinal: int = 0) -> None:
        self.frame(53, struct.pack("<I", ordinal))

    def end(self) -> None:
        self.frame(99)

    def write(self, cut: int = 0) -> Path:
        """Write the events, without the last `cut` bytes, and return the session folder."""
        data = b"".join(self.frames)
        (self.folder / "events").write_bytes(data[: len(data) - cut])
        return self.folder.parent
