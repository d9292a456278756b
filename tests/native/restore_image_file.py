"""Writes a restore image by hand, straight from image_format.h, so that the engine is tested apart from the packer."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

ABI = 7
NONE = 0xFFFFFFFF
SECTIONS = (
    ("strings", 1),
    ("devices", 48),
    ("log", 32),
    ("allocations", 32),
    ("mappings", 32),
    ("blobs", 24),
    ("blob_bytes", 1),
    ("images", 64),
    ("image_options", 16),
    ("kernels", 32),
    ("parameters", 8),
    ("attributes", 8),
    ("groups", 16),
    ("nodes", 24),
    ("edges", 16),
    ("node_attributes", 72),
    ("graphs", 64),
    ("records", 64),
    ("parameter_bytes", 1),
    ("copies", 200),
    ("references", 4),
    ("events", 4),
    ("moves", 16),
)
HEADER_SIZE = 8 + 4 + 4 + 8 + 32 + 4 * 4 + 8 + 24 * len(SECTIONS)

_TABLE = []
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = (_crc >> 1) ^ (0x82F63B78 if _crc & 1 else 0)
    _TABLE.append(_crc)


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


@dataclass
class ImageFile:
    """The parts of an image under construction; every `add` returns the index that others refer to."""

    simulated: int = 1
    driver_version: int = 13000
    captured_nanoseconds: int = 0
    parts: dict[str, bytearray] = field(default_factory=lambda: {name: bytearray() for name, _ in SECTIONS})

    def __post_init__(self) -> None:
        self.parts["strings"] += b"\0"
        self.role = self.string("program-0")

    def add(self, section: str, layout: str, *values: object) -> int:
        """Append one entry and return its index."""
        packed = struct.pack("<" + layout, *values)
        part = self.parts[section]
        index = len(part) // len(packed)
        part += packed
        return index

    def string(self, text: str) -> int:
        """Append a string and return its offset; the empty string is 0."""
        if not text:
            return 0
        offset = len(self.parts["strings"])
        self.parts["strings"] += text.encode() + b"\0"
        return offset

    def device(
        self,
        *,
        ordinal: int = 0,
        name: str,
        major: int,
        minor: int,
        processors: int,
        memory: int,
        base: int,
        arena: int,
    ) -> int:
        """Append a device."""
        return self.add(
            "devices", "IIIIIIQQQ", ordinal, self.string(name), major, minor, processors, 1, memory, base, arena
        )

    def log(self, address: int, size: int, *, device: int = 0, thread: int = 0, freed: int = 0, where: str = "") -> int:
        """Append an allocation or a free of the main arena."""
        return self.add("log", "QQIHHII", address, size, device, thread, freed, self.string(where), 0)

    def allocation(
        self, address: int, size: int, *, device: int = 0, arena: int = 0, restored: int = 0, entries: int = 0
    ) -> int:
        """Append an allocation that graphs refer to; `entries` of the log must have come as recorded."""
        return self.add("allocations", "QQIIII", address, size, device, arena, restored, entries)

    def mapping(self, address: int, size: int, *, device: int = 0, contents: int = NONE, offset: int = 0) -> int:
        """Append a range that the engine maps."""
        return self.add("mappings", "QQIIQ", address, size, device, contents, offset)

    def blob(self, data: bytes) -> int:
        """Append bytes on a page of their own."""
        part = self.parts["blob_bytes"]
        part += bytes(-len(part) % 4096)
        index = self.add("blobs", "QQII", len(part), len(data), crc32c(data), 0)
        part += data
        return index

    def image(
        self,
        key: bytes,
        blob: int,
        *,
        api: int = 2,
        instance: int = 0,
        device: int = 0,
        options: tuple[tuple[int, int], ...] = (),
        whole: int = NONE,
    ) -> int:
        """Append a kernel image: api 1 = module, 2 = library; `whole` has the kernels that this one lacks."""
        first = len(self.parts["image_options"]) // 16
        for option, value in options:
            self.add("image_options", "IIQ", option, 0, value)
        return self.add(
            "images",
            "32sIIIIIIII",
            key,
            blob,
            api,
            instance,
            device,
            first,
            len(options),
            whole,
            self.string("a test image"),
        )

    def kernel(
        self,
        image: int,
        name: str,
        parameters: list[tuple[int, int]],
        *,
        attributes: tuple[tuple[int, int], ...] = (),
        device: int = 0,
    ) -> int:
        """Append a kernel with its parameter layout."""
        first_parameter = len(self.parts["parameters"]) // 8
        for offset, size in parameters:
            self.add("parameters", "II", offset, size)
        first_attribute = len(self.parts["attributes"]) // 8
        for identity, value in attributes:
            self.add("attributes", "Ii", identity, value)
        end = parameters[-1][0] + parameters[-1][1] if parameters else 0
        return self.add(
            "kernels",
            "IIIIIIII",
            image,
            self.string(name),
            first_parameter,
            len(parameters),
            first_attribute,
            len(attributes),
            end,
            device,
        )

    def group(
        self, nodes: list[dict[str, object]], edges: list[tuple[int, int, bytes]], *, as_given: bool = False
    ) -> int:
        """Append a topology. A node is {type, kernel, attributes: [(id, bytes)], child}; `as_given`: edges unsorted."""
        first_node = len(self.parts["nodes"]) // 24
        for node in nodes:
            attributes = node.get("attributes", [])
            first_attribute = len(self.parts["node_attributes"]) // 72
            for identity, value in attributes:
                self.add("node_attributes", "II64s", identity, 0, value)
            self.add(
                "nodes",
                "IIIIII",
                node["type"],
                node.get("kernel", NONE),
                first_attribute,
                len(attributes),
                node.get("child", NONE),
                0,
            )
        first_edge = len(self.parts["edges"]) // 16
        if not as_given:
            edges = sorted(edges, key=lambda edge: (edge[2], edge[0], edge[1]))
        for source, target, data in edges:
            self.add("edges", "II8s", source, target, data)
        return self.add("groups", "IIII", first_node, len(nodes), first_edge, len(edges))

    def kernel_record(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], parameters: bytes, *, shared: int = 0
    ) -> int:
        """Append what one kernel node of one graph holds."""
        part = self.parts["parameter_bytes"]
        part += bytes(-len(part) % 16)
        offset = len(part)
        part += parameters
        return self.add("records", "IIIIIIIIQ24x", *grid, *block, shared, len(parameters), offset)

    def memset_record(
        self, destination: int, value: int, width: int, *, element: int = 4, height: int = 1, pitch: int = 0
    ) -> int:
        """Append what one memset node of one graph holds."""
        return self.add("records", "QQQQII24x", destination, pitch, width, height, value, element)

    def memcpy_record(self, copy: bytes) -> int:
        """Append what one memcpy node of one graph holds: a CUDA_MEMCPY3D."""
        return self.add("records", "I60x", self.add("copies", "200s", copy))

    def event_record(self, event: int) -> int:
        """Append what one event node of one graph holds."""
        return self.add("records", "I60x", event)

    def child_record(self, first_record: int) -> int:
        """Append what one child graph node of one graph holds."""
        return self.add("records", "Q56x", first_record)

    def empty_record(self) -> int:
        """Append what an empty node of one graph holds."""
        return self.add("records", "64x")

    def graph(
        self,
        group: int,
        first_record: int,
        *,
        set: str = "decode",
        key: str = "1",
        metadata: str = "",
        flags: int = 0,
        device: int = 0,
        context: int = NONE,
        references: tuple[int, ...] = (),
        restorable: int = 1,
        reason: str = "",
        first_use: int = 0,
        moves: int = 0,
    ) -> int:
        """Append a graph."""
        first = len(self.parts["references"]) // 4
        for reference in references:
            self.add("references", "I", reference)
        return self.add(
            "graphs",
            "IIIIQQIIIIIIII",
            group,
            self.string(set),
            self.string(key),
            self.string(metadata),
            first_record,
            flags,
            device,
            context,
            first,
            len(references),
            restorable,
            self.string(reason),
            first_use,
            moves,
        )

    def move(self, section: str, offset: int, *, device: int = 0) -> int:
        """Append the place of an address. Places are to be appended in their order."""
        number = [name for name, _ in SECTIONS].index(section)
        return self.add("moves", "QII", offset, number, device)

    def to_bytes(self) -> bytes:
        """The whole file."""
        body = bytearray()
        table = bytearray()
        for name, size in SECTIONS:
            alignment = 4096 if name == "blob_bytes" else 16
            body += bytes(-(HEADER_SIZE + len(body)) % alignment)
            part = bytes(self.parts[name])
            checksum = 0 if name == "blob_bytes" else crc32c(part)
            table += struct.pack("<QQII", HEADER_SIZE + len(body), len(part) // size, size, checksum)
            body += part
        file_size = HEADER_SIZE + len(body)

        def header(crc: int) -> bytes:
            return struct.pack(
                "<8sIIQ32sIIIIQ",
                b"FDRYIMG1",
                ABI,
                len(SECTIONS),
                file_size,
                bytes(32),
                self.driver_version,
                self.simulated,
                self.role,
                crc,
                self.captured_nanoseconds,
            ) + bytes(table)

        return header(crc32c(header(0))) + bytes(body)

    def write(self, folder: Path, role: str = "program-0") -> Path:
        """Write `<folder>/<role>.image`."""
        path = folder / f"{role}.image"
        path.write_bytes(self.to_bytes())
        return path
