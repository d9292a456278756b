"""Builds a graph node by node from what the archive says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from foundry.findings import VERIFY_DEVICE_ATTRIBUTE, VERIFY_DEVICE_EDGES, VERIFY_DEVICE_NODE
from foundry.model import Group, NodeType, Process
from foundry.model.views import GraphView, NodeView
from foundry.verify.device.bindings import Driver, DriverError, read_bytes, write_bytes
from foundry.verify.device.images import Images, KernelError

ATTRIBUTE_SIZE = 64


class NodeError(Exception):
    """A node cannot be built, or is not what it should be. `path` leads to it from the top of the graph."""

    def __init__(
        self, code: str, text: str, path: tuple[int, ...], *, parameter: int | None = None, offset: int | None = None
    ) -> None:
        super().__init__(text)
        self.code = code
        self.path = path
        self.parameter = parameter
        self.offset = offset


@dataclass(slots=True)
class Built:
    """A graph of the driver's, with its nodes in the order of the archive."""

    body: int
    path: tuple[int, ...]
    handle: Any
    nodes: list[Any] = field(default_factory=list)
    views: list[NodeView] = field(default_factory=list)

    def at(self, node: int) -> tuple[int, ...]:
        """Give the path to a node."""
        return (*self.path, node)


class Builder:
    """Builds the graphs of one process in the current context."""

    def __init__(self, driver: Driver, process: Process, images: Images) -> None:
        self._driver = driver
        self._process = process
        self._images = images
        self._view = GraphView(process)
        self._events: dict[int, Any] = {}
        self._fresh: dict[tuple[int, int], bytes] = {}

    def kernel(self, body: int, node: int) -> Any:
        """Give the driver's handle of a kernel node's kernel."""
        return self._images.kernel(self._kernel_number(body, node))

    def of_library(self, body: int, node: int) -> bool:
        """Whether that kernel is one of a library."""
        return self._images.of_library(self._kernel_number(body, node))

    def group(self, body: int) -> Group:
        """Give the topology of a body."""
        return self._view.group(body)

    def views(self, body: int) -> Iterator[NodeView]:
        """Go through the nodes of a body."""
        return self._view.nodes(body)

    def event(self, number: int) -> Any:
        """Give the driver's event for one of the archive's."""
        if number not in self._events:
            self._events[number] = self._driver.cuEventCreate(self._process.events[number])
        return self._events[number]

    def build(self, body: int, context: Any, check: Any, path: tuple[int, ...] = ()) -> Built:
        """Build a body with all that is below it; `check` is called with each graph before it is put into another."""
        built = Built(body, path, self._driver.cuGraphCreate(0))
        try:
            for view in self._view.nodes(body):
                built.views.append(view)
                built.nodes.append(self._node(built, view, context, check))
            self._connect(built)
            check(built)
        except BaseException:
            self._driver.cuGraphDestroy(built.handle)
            raise
        return built

    def _kernel_number(self, body: int, node: int) -> int:
        return int(self._view.group(body).nodes["kernel"][node])

    def _node(self, built: Built, view: NodeView, context: Any, check: Any) -> Any:
        driver, graph = self._driver, built.handle
        try:
            if view.type == NodeType.KERNEL:
                return self._kernel_node(built, view, context)
            if view.type == NodeType.MEMSET:
                return driver.cuGraphAddMemsetNode(graph, [], 0, self._memset(view), context)
            if view.type == NodeType.MEMCPY:
                copy = driver.module.CUDA_MEMCPY3D()
                write_bytes(copy, view.copy or b"")
                return driver.cuGraphAddMemcpyNode(graph, [], 0, copy, context)
            if view.type == NodeType.EVENT_RECORD:
                return driver.cuGraphAddEventRecordNode(graph, [], 0, self.event(view.event or 0))
            if view.type == NodeType.WAIT_EVENT:
                return driver.cuGraphAddEventWaitNode(graph, [], 0, self.event(view.event or 0))
            if view.type == NodeType.GRAPH:
                child = self.build(view.child or 0, context, check, built.at(view.index))
                try:
                    return driver.cuGraphAddChildGraphNode(graph, [], 0, child.handle)
                finally:
                    driver.cuGraphDestroy(child.handle)
            return driver.cuGraphAddEmptyNode(graph, [], 0)
        except DriverError as error:
            raise NodeError(VERIFY_DEVICE_NODE, f"it cannot be added: {error}", built.at(view.index)) from None
        except KernelError as error:
            raise NodeError(error.code, str(error), built.at(view.index), parameter=error.parameter) from None

    def _kernel_node(self, built: Built, view: NodeView, context: Any) -> Any:
        wanted = self._driver.module.CUDA_KERNEL_NODE_PARAMS()
        kernel = self.kernel(built.body, view.index)
        if self.of_library(built.body, view.index):
            wanted.kern = kernel
        else:
            wanted.func = kernel
        wanted.ctx = context
        wanted.gridDimX, wanted.gridDimY, wanted.gridDimZ = view.grid or (1, 1, 1)
        wanted.blockDimX, wanted.blockDimY, wanted.blockDimZ = view.block or (1, 1, 1)
        wanted.sharedMemBytes = view.shared_bytes or 0
        values = np.frombuffer((view.parameters or b"") + bytes(8), np.uint8)
        places = view.kernel.parameters if view.kernel else ()
        pointers = np.array([values.ctypes.data + offset for offset, _ in places] + [0], np.uint64)
        wanted.kernelParams = pointers.ctypes.data
        node = self._driver.cuGraphAddKernelNode(built.handle, [], 0, wanted)
        for number, value in view.attributes:
            self._set_attribute(built, view.index, node, number, value.ljust(ATTRIBUTE_SIZE, b"\0"))
        return node

    def _set_attribute(self, built: Built, at: int, node: Any, number: int, value: bytes) -> None:
        driver = self._driver
        try:
            name = driver.member("CUkernelNodeAttrID", number)
            known = (self._kernel_number(built.body, at), number)
            if known not in self._fresh:
                before = driver.cuGraphKernelNodeGetAttribute(node, name)
                self._fresh[known] = read_bytes(before, ATTRIBUTE_SIZE)
            if self._fresh[known] == value:
                return
            wanted = driver.module.CUkernelNodeAttrValue()
            write_bytes(wanted, value)
            driver.cuGraphKernelNodeSetAttribute(node, name, wanted)
        except DriverError as error:
            text = f"its launch attribute {number} cannot be set: {error}"
            raise NodeError(VERIFY_DEVICE_ATTRIBUTE, text, built.at(at)) from None

    def _memset(self, view: NodeView) -> Any:
        wanted, row = self._driver.module.CUDA_MEMSET_NODE_PARAMS(), view.memset or {}
        wanted.dst = self._driver.module.CUdeviceptr(row["destination"])
        wanted.pitch, wanted.value, wanted.elementSize = row["pitch"], row["value"], row["element_size"]
        wanted.width, wanted.height = row["width"], row["height"]
        return wanted

    def _connect(self, built: Built) -> None:
        """Add the edges, one call for each run of equal data: drivers apply the first one's data to all of a call."""
        edges = self.group(built.body).ordered_edges
        if not len(edges):
            return
        bounds = [0, *(np.flatnonzero(np.diff(edges["data"])) + 1).tolist(), len(edges)]
        for begin, end in pairwise(bounds):
            part = edges[begin:end]
            starts = [built.nodes[at] for at in part["start"].tolist()]
            ends = [built.nodes[at] for at in part["end"].tolist()]
            data = int(part["data"][0]).to_bytes(8, "little")
            records = None
            if any(data):
                records = []
                for _ in range(len(part)):
                    records.append(self._driver.module.CUgraphEdgeData())
                    write_bytes(records[-1], data)
            try:
                self._driver.newest("cuGraphAddDependencies")(built.handle, starts, ends, records, len(part))
            except DriverError as error:
                first = int(part["start"][0])
                text = f"its edge to node {int(part['end'][0])}, or one with the same data {data.hex()}, fails: {error}"
                raise NodeError(VERIFY_DEVICE_EDGES, text, built.at(first)) from None
