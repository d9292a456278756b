"""Recorded bytes of nodes, edges and attributes, decoded."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from foundry.describe import names
from foundry.describe.documents import Attribute, Copy, CopySide, Edge, Memset
from foundry.describe.targets import Targets
from foundry.model.tables import COPY_SIDES

_VALUE_SIZE = 64
_POINTED = (2, 4)
"""Memory types whose address is one of the device."""

_SYNCHRONIZATION = {1: "auto", 2: "spin", 3: "yield", 4: "blocking_sync"}
_SCHEDULING = {0: "default", 1: "spread", 2: "load_balancing"}
_DOMAINS = {0: "default", 1: "remote"}
_ACCESS = {0: "normal", 1: "streaming", 2: "persisting"}


def launch_attributes(pairs: Iterable[tuple[int, bytes]]) -> list[Attribute]:
    """Decode the launch attributes of a node."""
    return [
        Attribute(
            number=number,
            name=names.launch_attribute(number),
            value=_launch_value(number, value.ljust(_VALUE_SIZE, b"\0")),
            bytes=value.hex(),
        )
        for number, value in pairs
    ]


def _launch_value(number: int, data: bytes) -> Any:
    """Decode a `CUlaunchAttributeValue`; the bytes of one that is not known."""
    word = int.from_bytes(data[:4], "little")
    signed: int = struct.unpack_from("<i", data)[0]
    if number == 1:
        base, size, ratio, hit, miss = struct.unpack_from("<QQfii", data)
        return {
            "base": names.address(base),
            "bytes": size,
            "hit_ratio": round(ratio, 6) if abs(ratio) <= 1 else names.address(struct.unpack_from("<I", data, 16)[0]),
            "hit": names.name(_ACCESS, hit),
            "miss": names.name(_ACCESS, miss),
        }
    if number in (2, 6):
        return bool(word)
    if number in (4, 11):
        return list(struct.unpack_from("<3I", data))
    if number == 9:
        return {"default": data[0], "remote": data[1]}
    if number in (7, 12):
        flags, start = struct.unpack_from("<2i", data, 8)
        return {"flags": flags} if number == 12 else {"flags": flags, "at_block_start": bool(start)}
    if number == 13:
        return {"device_updatable": bool(word)}
    tables = {3: _SYNCHRONIZATION, 5: _SCHEDULING, 10: _DOMAINS}
    if number in tables:
        return names.name(tables[number], word)
    if number in names.LAUNCH_ATTRIBUTES:
        return signed
    return data.rstrip(b"\0").hex()


def plain_attributes(attributes: Iterable[Attribute]) -> list[Attribute]:
    """Leave out the attributes that are what a launch has without asking for anything."""
    usual = {3: "auto", 9: {"default": 0, "remote": 1}}
    return [
        item
        for item in attributes
        if any(bytes.fromhex(item["bytes"])) and usual.get(item["number"], ...) != item["value"]
    ]


def function_attributes(pairs: Iterable[tuple[int, int]]) -> list[Attribute]:
    """Name the attributes of a function."""
    return [
        Attribute(
            number=number,
            name=names.function_attribute(number),
            value=value,
            bytes=(value & 0xFFFFFFFF).to_bytes(4, "little").hex(),
        )
        for number, value in pairs
    ]


def memset(row: Mapping[str, int], targets: Targets) -> Memset:
    """Decode a row of `tables.MEMSET`."""
    return Memset(
        destination=names.address(row["destination"]),
        target=targets.of(row["destination"], pointer=True),
        pitch=row["pitch"],
        width=row["width"],
        height=row["height"],
        value=row["value"],
        element_size=row["element_size"],
    )


def copy(data: bytes, targets: Targets) -> Copy:
    """Decode a `CUDA_MEMCPY3D`."""
    width, height, depth = struct.unpack_from("<3Q", data, 176)
    return Copy(
        source=_side(data, 0, COPY_SIDES["source"], targets),
        destination=_side(data, 88, COPY_SIDES["destination"], targets),
        width=width,
        height=height,
        depth=depth,
    )


def _side(data: bytes, begin: int, kind_at: int, targets: Targets) -> CopySide:
    x, y, z, level = struct.unpack_from("<4Q", data, begin)
    memory = struct.unpack_from("<I", data, kind_at)[0]
    address = struct.unpack_from("<Q", data, kind_at + 16)[0]
    pitch, height = struct.unpack_from("<2Q", data, kind_at + 40)
    known = memory in _POINTED
    return CopySide(
        memory=names.name(names.MEMORY_TYPES, memory),
        address=names.address(address) if known else None,
        target=targets.of(address, pointer=True) if known else None,
        x=x,
        y=y,
        z=z,
        level=level,
        pitch=pitch,
        height=height,
    )


def edge(start: int, end: int, data: int) -> Edge:
    """Decode an edge with its `CUgraphEdgeData`."""
    return Edge(
        start=start,
        end=end,
        type=names.name(names.EDGE_TYPES, data >> 16 & 0xFF),
        from_port=data & 0xFF,
        to_port=data >> 8 & 0xFF,
        data=names.address(data),
    )


def plain_edge(item: Edge) -> bool:
    """Tell whether an edge is one that waits for all of its start."""
    return item["data"] == "0x0"
