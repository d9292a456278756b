"""Asks the driver what it made of a graph, and compares that with the archive."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from foundry.findings import (
    VERIFY_DEVICE_ATTRIBUTE,
    VERIFY_DEVICE_EDGES,
    VERIFY_DEVICE_NODE,
)
from foundry.model import NodeType
from foundry.model.tables import COPY_SIDES, COPY_SIZE
from foundry.model.views import NodeView
from foundry.verify.device.bindings import Driver, DriverError, read_bytes
from foundry.verify.device.build import ATTRIBUTE_SIZE, Builder, Built, NodeError

TOLD_FLAGS = 1 | 4
"""Flags of an instantiation that a driver tells afterwards: freed at launch, launched by the device. Not the use of
node priorities, which drivers of CUDA 13 take but do not tell, nor the upload, which is over by then."""

_COPY_SHAPE = 176
_HOST, _ARRAY = 1, 3


class Readback:
    """Compares graphs of one process."""

    def __init__(self, driver: Driver, builder: Builder) -> None:
        self._driver = driver
        self._builder = builder
        self.edges = 0
        self.nodes = 0

    def check(self, built: Built) -> None:
        """Compare a graph: nodes, then edges. Raises NodeError at the first difference."""
        try:
            count = int(self._driver.cuGraphGetNodes(built.handle, 0)[1])
            if count != len(built.nodes):
                raise NodeError(
                    VERIFY_DEVICE_NODE, f"{count} nodes read back, {len(built.nodes)} were added", built.path
                )
            for view, node in zip(built.views, built.nodes, strict=True):
                self._node(built, view, node)
            self._edges(built)
        except DriverError as error:
            raise NodeError(VERIFY_DEVICE_NODE, f"it cannot be read back: {error}", built.path) from None
        self.nodes += len(built.nodes)

    def flags(self, execution: Any, wanted: int) -> str:
        """Compare an exec's flags; empty if they are the same, or the driver cannot tell."""
        try:
            found = int(self._driver.cuGraphExecGetFlags(execution))
        except (AttributeError, DriverError):
            return ""
        if (found ^ wanted) & TOLD_FLAGS:
            return f"it was instantiated with flags {wanted:#x}, and reads back with {found:#x}"
        return ""

    def _node(self, built: Built, view: NodeView, node: Any) -> None:
        driver = self._driver
        kind = int(driver.cuGraphNodeGetType(node))
        if kind != view.type:
            text = f"it reads back as a node of type {kind}, not {int(view.type)}"
            raise NodeError(VERIFY_DEVICE_NODE, text, built.at(view.index))
        if kind == NodeType.KERNEL:
            self._kernel(built, view, driver.cuGraphKernelNodeGetParams(node))
            self._attributes(built, view, node)
        elif kind == NodeType.MEMSET:
            self._memset(built, view, driver.cuGraphMemsetNodeGetParams(node))
        elif kind == NodeType.MEMCPY:
            self._copy(built, view, read_bytes(driver.cuGraphMemcpyNodeGetParams(node), COPY_SIZE))
        elif kind == NodeType.GRAPH:
            count = int(driver.cuGraphGetNodes(driver.cuGraphChildGraphNodeGetGraph(node), 0)[1])
            _require(built, view, "nodes of its graph", count, len(self._builder.group(view.child or 0).nodes))
        elif kind == NodeType.EVENT_RECORD:
            event = int(driver.cuGraphEventRecordNodeGetEvent(node))
            _require(built, view, "event", event, int(self._builder.event(view.event or 0)))
        elif kind == NodeType.WAIT_EVENT:
            event = int(driver.cuGraphEventWaitNodeGetEvent(node))
            _require(built, view, "event", event, int(self._builder.event(view.event or 0)))

    def _kernel(self, built: Built, view: NodeView, found: Any) -> None:
        kernel = int(self._builder.kernel(built.body, view.index))
        handle = found.kern if self._builder.of_library(built.body, view.index) else found.func
        _require(built, view, "kernel", int(handle), kernel)
        _require(built, view, "grid", (found.gridDimX, found.gridDimY, found.gridDimZ), view.grid)
        _require(built, view, "block", (found.blockDimX, found.blockDimY, found.blockDimZ), view.block)
        _require(built, view, "shared memory", found.sharedMemBytes, view.shared_bytes)
        places = view.kernel.parameters if view.kernel else ()
        if not places:
            return
        address, values = int(found.kernelParams or 0), view.parameters or b""
        if not address:
            raise NodeError(VERIFY_DEVICE_NODE, "it reads back without parameters", built.at(view.index))
        pointers = struct.unpack(f"<{len(places)}Q", ctypes.string_at(address, 8 * len(places)))
        for number, ((offset, size), pointer) in enumerate(zip(places, pointers, strict=True)):
            if not pointer or ctypes.string_at(pointer, size) != values[offset : offset + size]:
                text = f"its parameter {number} of {size} bytes reads back with another value"
                place = built.at(view.index)
                raise NodeError(VERIFY_DEVICE_NODE, text, place, parameter=number, offset=offset)

    def _attributes(self, built: Built, view: NodeView, node: Any) -> None:
        for number, value in view.attributes:
            name = self._driver.member("CUkernelNodeAttrID", number)
            try:
                found = read_bytes(self._driver.cuGraphKernelNodeGetAttribute(node, name), ATTRIBUTE_SIZE)
            except DriverError as error:
                text = f"its launch attribute {number} cannot be read back: {error}"
                raise NodeError(VERIFY_DEVICE_ATTRIBUTE, text, built.at(view.index)) from None
            if found != value.ljust(ATTRIBUTE_SIZE, b"\0"):
                shown, wanted = found.hex().rstrip("0") or "0", value.hex().rstrip("0") or "0"
                text = f"its launch attribute {number} reads back as {shown}, not {wanted}"
                raise NodeError(VERIFY_DEVICE_ATTRIBUTE, text, built.at(view.index))

    def _memset(self, built: Built, view: NodeView, found: Any) -> None:
        row = view.memset or {}
        _require(built, view, "destination", int(found.dst), row["destination"])
        for name, value in (("value", found.value), ("width", found.width), ("height", found.height)):
            _require(built, view, name, value, row[name])
        _require(built, view, "size of an element", found.elementSize, row["element_size"])
        if row["height"] > 1:
            _require(built, view, "pitch", found.pitch, row["pitch"])

    def _copy(self, built: Built, view: NodeView, found: bytes) -> None:
        wanted = view.copy or b""
        shape, shape_wanted = (struct.unpack_from("<3Q", data, _COPY_SHAPE) for data in (found, wanted))
        _require(built, view, "width, height and depth", shape, shape_wanted)
        for name, at in COPY_SIDES.items():
            side, side_wanted = (_copy_side(data, at) for data in (found, wanted))
            _require(built, view, name, side, side_wanted)

    def _edges(self, built: Built) -> None:
        driver, edges = self._driver, self._builder.group(built.body).edges
        wanted = set(zip(edges["start"].tolist(), edges["end"].tolist(), edges["data"].tolist(), strict=True))
        ask = driver.newest("cuGraphGetEdges")
        count = int(ask(built.handle, 0)[-1])
        starts, ends, *more = ask(built.handle, count)[:-1]
        data = more[0] if more else []
        places = {int(node): at for at, node in enumerate(built.nodes)}
        found = set()
        for number in range(count):
            record = int.from_bytes(read_bytes(data[number], 8), "little") if number < len(data) else 0
            found.add((places.get(int(starts[number]), -1), places.get(int(ends[number]), -1), record))
        for start, end, record in sorted(wanted - found):
            text = f"its edge to node {end} with data {record.to_bytes(8, 'little').hex()} does not read back"
            raise NodeError(VERIFY_DEVICE_EDGES, text, built.at(start))
        if len(found) != len(wanted) or count != len(wanted):
            raise NodeError(VERIFY_DEVICE_EDGES, f"{count} edges read back, {len(wanted)} were added", built.path)
        self.edges += count


def _require(built: Built, view: NodeView, what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        text = f"its {what} reads back as {found}, not {wanted}"
        raise NodeError(VERIFY_DEVICE_NODE, text, built.at(view.index))


def _copy_side(data: bytes, at: int) -> tuple[int, ...]:
    """Give what has a meaning on one side of a copy: kind, origin, address, and with more than one row the pitch."""
    kind = struct.unpack_from("<I", data, at)[0]
    origin = struct.unpack_from("<3Q", data, at - 32)
    address = struct.unpack_from("<Q", data, at + 16)[0]
    height, depth = struct.unpack_from("<2Q", data, _COPY_SHAPE + 8)
    pitch = struct.unpack_from("<2Q", data, at + 40) if height > 1 or depth > 1 else ()
    return (kind, *origin, address if kind not in (_HOST, _ARRAY) else 0, *pitch)
