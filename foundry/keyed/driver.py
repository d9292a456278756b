"""What a cache of graphs asks of the driver, through ctypes: no binding is needed, and the hook sees every call."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any, Protocol

from foundry.errors import FoundryError

OUT_OF_MEMORY = 2
UPDATE_REFUSED = 910
CAPTURE_OF_THIS_THREAD = 1

Record = Callable[[int], object]
"""Puts a pass on a stream, and does nothing else: it runs once for an eager pass and once for each recording."""


class CallError(FoundryError):
    """A driver function failed; `result` is its `CUresult`."""

    def __init__(self, function: str, result: int, name: str = "") -> None:
        super().__init__(f"{function}: {name or f'CUresult {result}'}")
        self.result = result


class Driver(Protocol):
    """The driver, in the context that is current in the calling thread. Calls that fail raise `CallError`."""

    def record(self, stream: int, record: Record) -> int:
        """Capture what `record` puts on the stream, and return the graph. The stream captures nothing afterwards."""

    def instantiate(self, graph: int) -> int:
        """Make an exec of a graph."""

    def update(self, executable: int, graph: int) -> str | None:
        """Make the exec one of this graph, or say why the driver refuses."""

    def launch(self, executable: int, stream: int) -> None:
        """Launch an exec."""

    def drop_graph(self, graph: int) -> None:
        """Destroy a graph."""

    def drop_exec(self, executable: int) -> None:
        """Destroy an exec. One that runs is freed when it is done."""

    def wait(self, stream: int) -> None:
        """Wait until the stream is idle."""

    def free_memory(self) -> int:
        """Tell how many bytes of device memory are free."""

    def clear_error(self) -> None:
        """Forget an error that would stick to what the program asks next."""


class _UpdateResult(ctypes.Structure):
    _fields_ = (("result", ctypes.c_int), ("error_node", ctypes.c_void_p), ("error_from_node", ctypes.c_void_p))


_UPDATE_RESULTS = {
    2: "other nodes or edges",
    3: "a node of another kind",
    4: "a function of another kind",
    5: "parameters that cannot be changed",
    6: "a node that cannot be changed",
    7: "a function that cannot be changed",
    8: "other attributes of a node",
}


class LibraryDriver:
    """Through libcuda.so.1 of this process."""

    def __init__(self) -> None:
        self._library: Any = ctypes.CDLL("libcuda.so.1")
        self._launch = self._library.cuGraphLaunch
        self._launch.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        # The runtime keeps the last error of a thread, and its next caller would be told of ours.
        self._last_error = getattr(ctypes.CDLL(None), "cudaGetLastError", None)

    def _call(self, name: str, *arguments: object) -> None:
        self._check(name, getattr(self._library, name)(*arguments))

    def _check(self, name: str, result: int) -> None:
        if result:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(result, ctypes.byref(text))
            raise CallError(name, result, (text.value or b"").decode())

    def record(self, stream: int, record: Record) -> int:
        """Capture what `record` puts on the stream, and return the graph. The stream captures nothing afterwards."""
        graph = ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), CAPTURE_OF_THIS_THREAD)
        try:
            record(stream)
        except BaseException:
            with contextlib.suppress(CallError):
                self._call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
            if graph.value:
                self.drop_graph(graph.value)
            raise
        self._call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        return graph.value or 0

    def instantiate(self, graph: int) -> int:
        """Make an exec of a graph."""
        executable = ctypes.c_void_p()
        self._call(
            "cuGraphInstantiateWithFlags", ctypes.byref(executable), ctypes.c_void_p(graph), ctypes.c_ulonglong(0)
        )
        return executable.value or 0

    def update(self, executable: int, graph: int) -> str | None:
        """Make the exec one of this graph, or say why the driver refuses."""
        found = _UpdateResult()
        result = self._library.cuGraphExecUpdate_v2(
            ctypes.c_void_p(executable), ctypes.c_void_p(graph), ctypes.byref(found)
        )
        if result == UPDATE_REFUSED:
            return _UPDATE_RESULTS.get(found.result, f"CUgraphExecUpdateResult {found.result}")
        self._check("cuGraphExecUpdate_v2", result)
        return None

    def launch(self, executable: int, stream: int) -> None:
        """Launch an exec."""
        result = self._launch(executable, stream)
        if result:
            self._check("cuGraphLaunch", result)

    def drop_graph(self, graph: int) -> None:
        """Destroy a graph."""
        self._call("cuGraphDestroy", ctypes.c_void_p(graph))

    def drop_exec(self, executable: int) -> None:
        """Destroy an exec. One that runs is freed when it is done."""
        self._call("cuGraphExecDestroy", ctypes.c_void_p(executable))

    def wait(self, stream: int) -> None:
        """Wait until the stream is idle."""
        self._call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def free_memory(self) -> int:
        """Tell how many bytes of device memory are free."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def clear_error(self) -> None:
        """Forget an error that would stick to what the program asks next."""
        if self._last_error is not None:
            self._last_error()
