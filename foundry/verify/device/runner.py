"""What a fresh process does with the graphs of one process of an archive. Tells the parent by lines of JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from foundry.archive import open_archive
from foundry.errors import ArchiveError
from foundry.findings import (
    BLOB_OUTSIDE,
    VERIFY_DEVICE_DRIVER,
    VERIFY_DEVICE_FLAGS,
    VERIFY_DEVICE_HANG,
    VERIFY_DEVICE_LAUNCH,
    VERIFY_DEVICE_MEMORY,
    VERIFY_DEVICE_MODEL,
    VERIFY_DEVICE_NONE,
    VERIFY_DEVICE_RANGE,
)
from foundry.model import NONE, Device, Graph, Process
from foundry.verify.device.bindings import BindingsError, Driver, DriverError, simulated
from foundry.verify.device.build import Builder, Built, NodeError
from foundry.verify.device.images import Images
from foundry.verify.device.launch import LaunchError, launch, unsafe
from foundry.verify.device.memory import DeviceMemory, MemoryLackingError, RangeTakenError, spans_of
from foundry.verify.device.readback import Readback
from foundry.verify.places import Places
from foundry.verify.pointers import pointers_of

Tell = Callable[[dict[str, Any]], None]

BUILT, LAUNCHED, FAILED, SKIPPED, OUTSIDE = "built", "launched", "failed", "skipped", "outside"
"""What came of a graph."""


class FatalError(Exception):
    """Nothing can be checked on this machine."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def run(path: Path, number: int, first: int, *, launching: bool, seconds: float, tell: Tell) -> None:
    """Check the graphs of a process from the `first` one on."""
    with open_archive(path) as opened:
        process = opened.process(number)
        try:
            runner = Runner(process, tell, launching=launching, seconds=seconds)
        except FatalError as error:
            tell({"kind": "fatal", "code": error.code, "text": str(error)})
            return
        tell({"kind": "ready", "devices": runner.names, "driver": runner.version, "simulated": runner.simulated})
        for blob, images in runner.blobs_needed():
            try:
                data = opened.blob(blob)
            except ArchiveError as error:
                place = opened.head.blobs[blob].library
                if error.code != BLOB_OUTSIDE or place is None:
                    raise
                runner.outside.update(dict.fromkeys(images, place.name))
                continue
            runner.load(images, data)
            tell({"kind": "image", "blob": blob})
        contents = [(item.address, item.blob) for item in process.contents]
        runner.contents = lambda: ((address, opened.blob(blob)) for address, blob in contents)
        for graph in range(first, len(process.graphs)):
            tell({"kind": "begin", "index": graph})
            if not runner.graph(graph):
                return
        tell({"kind": "done"})


class Runner:
    """The devices, memory and kernels of one process."""

    def __init__(self, process: Process, tell: Tell, *, launching: bool, seconds: float) -> None:
        self._process = process
        self._tell = tell
        self._launching = launching
        self._seconds = seconds
        self._places = Places(process)
        self._pointers = pointers_of(process) if launching else None
        self.outside: dict[int, str] = {}
        """Images that a thin archive does not hold, with the library that does."""
        self.contents: Callable[[], Iterator[tuple[int, bytes]]] = lambda: iter(())
        try:
            self.simulated = simulated()
            self._driver = Driver()
            self._driver.cuInit(0)
            self.version = int(self._driver.cuDriverGetVersion())
            self._ordinals = self._choose()
        except (BindingsError, DriverError) as error:
            raise FatalError(VERIFY_DEVICE_NONE, str(error)) from None
        self._devices: dict[int, Any] = {}
        self._contexts: dict[int, Any] = {}
        self._memory: dict[int, DeviceMemory | RangeTakenError] = {}
        self._streams: dict[int, Any] = {}
        used = {graph.device for graph in process.graphs if graph.restorable}
        try:
            for device in process.devices:
                if device.ordinal in used:
                    self._open(device)
        except DriverError as error:
            raise FatalError(VERIFY_DEVICE_DRIVER, str(error)) from None
        self._images = Images(self._driver, process, self._devices)
        self._builder = Builder(self._driver, process, self._images)

    @property
    def names(self) -> list[str]:
        """The GPUs of this machine."""
        return self._names

    def blobs_needed(self) -> list[tuple[int, list[int]]]:
        """List the blobs that kernels of restorable graphs need, in order, each with its images."""
        process, blobs = self._process, dict[int, set[int]]()
        for number, use in self._places.kernel_uses().items():
            image = process.kernels[number].image
            if use.restorable and image != NONE and process.images[image].loaded != NONE:
                blobs.setdefault(process.images[image].loaded, set()).add(image)
        return [(blob, sorted(images)) for blob, images in sorted(blobs.items())]

    def load(self, images: list[int], data: bytes) -> None:
        """Load images of these bytes."""
        devices = {kernel.image: kernel.device for kernel in self._process.kernels}
        for number in images:
            self._enter(devices[number])
            self._images.load(number, data)

    def graph(self, number: int) -> bool:
        """Check one graph and tell what came of it; False if this process must end."""
        graph, begin = self._process.graphs[number], time.monotonic()
        self._readback = Readback(self._driver, self._builder)
        outcome, text, usable = self._outcome(graph, number)
        self._tell(
            {
                "kind": "graph",
                "index": number,
                "outcome": outcome,
                "text": text,
                "nodes": self._readback.nodes,
                "edges": self._readback.edges,
                "seconds": round(time.monotonic() - begin, 3),
            }
        )
        return usable

    def _outcome(self, graph: Graph, number: int) -> tuple[str, str, bool]:
        if not graph.restorable:
            return SKIPPED, f"it cannot be restored: {graph.reason}", True
        library = self._library_of(number)
        if library:
            return OUTSIDE, f"kernels of it are not in the archive, but in the library `{library}`", True
        memory = self._memory[graph.device]
        if isinstance(memory, RangeTakenError):
            return self._failed(VERIFY_DEVICE_RANGE, str(memory), graph)
        self._enter(graph.device)
        context = self._contexts[graph.device]
        spans = spans_of(self._process, graph)
        try:
            memory.hold(spans)
            built: Built = self._builder.build(graph.body, context, self._readback.check)
        except MemoryLackingError as error:
            return self._failed(VERIFY_DEVICE_MEMORY, str(error), graph)
        except NodeError as error:
            return self._failed(error.code, str(error), graph, error)
        except DriverError as error:
            return self._failed(VERIFY_DEVICE_DRIVER, str(error), graph)
        execution = None
        try:
            execution = self._driver.cuGraphInstantiate(built.handle, graph.instantiate_flags)
            fault = self._readback.flags(execution, graph.instantiate_flags)
            if fault:
                return self._failed(VERIFY_DEVICE_FLAGS, fault, graph)
            return self._launched(graph, number, memory, spans, execution)
        except DriverError as error:
            return self._failed(VERIFY_DEVICE_DRIVER, str(error), graph)
        except LaunchError as error:
            execution = None
            code = VERIFY_DEVICE_HANG if error.hangs else VERIFY_DEVICE_LAUNCH
            return (*self._failed(code, str(error), graph)[:2], False)
        finally:
            if execution is not None:
                self._driver.cuGraphExecDestroy(execution)
                self._driver.cuGraphDestroy(built.handle)

    def _library_of(self, number: int) -> str:
        """Name a library that holds kernels of a graph instead of the archive; empty if there is none."""
        process = self._process
        if not self.outside:
            return ""
        for body in range(process.graphs[number].body, self._places.ends[number]):
            nodes = process.groups[int(process.bodies[body])].nodes
            for kernel in set(nodes["kernel"].tolist()) - {NONE}:
                library = self.outside.get(process.kernels[kernel].image)
                if library:
                    return library
        return ""

    def _launched(
        self, graph: Graph, number: int, memory: DeviceMemory, spans: list[tuple[int, int]], execution: Any
    ) -> tuple[str, str, bool]:
        if self._pointers is None:
            return BUILT, "", True
        reason = unsafe(self._process, number, self._pointers)
        if reason:
            return BUILT, f"not launched: {reason}", True
        memory.fill(spans, self.contents())
        if graph.device not in self._streams:
            self._streams[graph.device] = self._driver.cuStreamCreate(1)
        launch(self._driver, execution, self._streams[graph.device], self._seconds)
        return LAUNCHED, "", True

    def _failed(self, code: str, text: str, graph: Graph, error: NodeError | None = None) -> tuple[str, str, bool]:
        place = self._places.graph(graph)
        if error and error.path:
            place = self._place(graph, error)
        self._tell({"kind": "problem", "code": code, "text": text, "place": place.as_dict()})
        return FAILED, text, True

    def _place(self, graph: Graph, error: NodeError) -> Any:
        """Name the node that a path of indices leads to."""
        body = graph.body
        for node in error.path[:-1]:
            body = next(
                view.child for view in self._builder.views(body) if view.index == node and view.child is not None
            )
        place = self._places.node(graph, body, error.path[-1], offset=error.offset)
        return place if error.parameter is None else place.with_parameter(error.parameter)

    def _choose(self) -> dict[int, int]:
        """Pick a GPU of the same model for each of the archive's: that of the same number, if it is one."""
        driver = self._driver
        count = int(driver.cuDeviceGetCount())
        self._names = [
            driver.cuDeviceGetName(128, driver.cuDeviceGet(at)).split(b"\0")[0].decode("utf-8", "replace")
            for at in range(count)
        ]
        chosen = {}
        for device in self._process.devices:
            fitting = [at for at, name in enumerate(self._names) if name == device.name]
            if device.ordinal in fitting:
                chosen[device.ordinal] = device.ordinal
            elif fitting:
                chosen[device.ordinal] = fitting[0]
            elif any(graph.device == device.ordinal and graph.restorable for graph in self._process.graphs):
                here = ", ".join(f"`{name}`" for name in self._names) or "none"
                text = f"its device {device.ordinal} is a `{device.name}`, the GPUs here are: {here}"
                raise FatalError(VERIFY_DEVICE_MODEL, text)
        return chosen

    def _open(self, device: Device) -> None:
        driver, local = self._driver, self._ordinals[device.ordinal]
        self._devices[device.ordinal] = driver.cuDeviceGet(local)
        self._contexts[device.ordinal] = driver.cuDevicePrimaryCtxRetain(self._devices[device.ordinal])
        self._enter(device.ordinal)
        try:
            self._memory[device.ordinal] = DeviceMemory(driver, device, local)
        except RangeTakenError as error:
            self._memory[device.ordinal] = error

    def _enter(self, ordinal: int) -> None:
        self._driver.cuCtxSetCurrent(self._contexts[ordinal])
