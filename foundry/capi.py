"""The hook's C interface (`foundry_capi.h`) from Python, found in the running process.

Nothing is loaded: where no hook was preloaded, `load()` gives a `Hook` that is off and answers no to everything.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import functools
import os
from collections.abc import Iterator
from typing import Protocol

from foundry import env
from foundry.errors import FoundryError

VERSION = 1
"""The version of `foundry_capi.h` that this module speaks."""

UNAVAILABLE = -1
MISUSE = -2


class Mode(enum.IntEnum):
    """What the hook does in this process."""

    OFF = 0
    CAPTURE = 1
    RESTORE = 2


class UnavailableError(FoundryError):
    """The hook or its archive cannot give what was asked for, and why. Do it the ordinary way."""


class MisuseError(FoundryError):
    """Calls into the hook came with wrong arguments or in a wrong order."""


class DriverError(FoundryError):
    """The driver refused; `result` is its `CUresult`."""

    def __init__(self, message: str, *, result: int) -> None:
        super().__init__(message)
        self.result = result


class Hook(Protocol):
    """What the adapters need of the hook. `ProcessHook` is the real one, `AbsentHook` the one of a plain start."""

    def mode(self) -> Mode:
        """Whether the hook is armed, and for what."""

    def reason(self) -> str:
        """Why the last call of this thread answered no, or why the hook disarmed."""

    def scratch_begin(self, name: str) -> None:
        """Start taking device memory from the scratch arena."""

    def scratch_end(self) -> None:
        """End the innermost scratch phase."""

    def graph_begin(self, set_name: str, key: str) -> None:
        """Store the first graph that this thread instantiates from now on under (set, key)."""

    def graph_end(self, metadata: str | None) -> None:
        """End `graph_begin` and attach the metadata."""

    def find(self, set_name: str, key: str) -> int:
        """Return the archive's graph of that name as a handle, or raise `UnavailableError`."""

    def metadata(self, graph: int) -> str | None:
        """Return the metadata that was attached at capture."""

    def wait(self, graph: int) -> None:
        """Build the graph's exec if the background has not, or raise `UnavailableError`."""

    def exec(self, graph: int) -> int:
        """Return the `CUgraphExec` of a graph that was waited for. The hook owns it."""

    def launch(self, graph: int, stream: int) -> None:
        """Launch a graph that was waited for."""

    def give_up(self, graph: int, reason: str) -> None:
        """Tell the report that the program captures this graph anew although the archive has it."""

    def range_base(self, device: int) -> int:
        """Return where the hook's address range of a device begins, 0 if it has none there."""

    def commit(self) -> None:
        """Say that the program is ready to serve."""

    def count(self, name: str, add: int = 1) -> None:
        """Add to a named total of the report."""

    def counter(self, name: str) -> int:
        """Return a named total."""


class AbsentHook:
    """A process without the hook: always off, counts nothing, gives nothing."""

    def __init__(self, why: str = "no foundry hook in this process") -> None:
        self._why = why

    def mode(self) -> Mode:
        """Return OFF."""
        return Mode.OFF

    def reason(self) -> str:
        """Say that there is no hook."""
        return self._why

    def scratch_begin(self, name: str) -> None:
        """Do nothing."""

    def scratch_end(self) -> None:
        """Do nothing."""

    def graph_begin(self, set_name: str, key: str) -> None:
        """Do nothing."""

    def graph_end(self, metadata: str | None) -> None:
        """Do nothing."""

    def find(self, set_name: str, key: str) -> int:
        """Raise, as there is no archive."""
        raise UnavailableError(self.reason())

    def metadata(self, graph: int) -> str | None:
        """Raise, as there is no archive."""
        raise UnavailableError(self.reason())

    def wait(self, graph: int) -> None:
        """Raise, as there is no archive."""
        raise UnavailableError(self.reason())

    def exec(self, graph: int) -> int:
        """Raise, as there is no archive."""
        raise UnavailableError(self.reason())

    def launch(self, graph: int, stream: int) -> None:
        """Raise, as there is no archive."""
        raise UnavailableError(self.reason())

    def give_up(self, graph: int, reason: str) -> None:
        """Do nothing."""

    def range_base(self, device: int) -> int:
        """Return zero."""
        return 0

    def commit(self) -> None:
        """Do nothing."""

    def count(self, name: str, add: int = 1) -> None:
        """Do nothing."""

    def counter(self, name: str) -> int:
        """Return zero."""
        return 0


_VOID, _INT, _TEXT, _POINTER, _LONG = None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_ulonglong

_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "foundry_mode": (_INT, ()),
    "foundry_reason": (_TEXT, ()),
    "foundry_scratch_begin": (_INT, (_TEXT,)),
    "foundry_scratch_end": (_INT, ()),
    "foundry_graph_begin": (_INT, (_TEXT, _TEXT)),
    "foundry_graph_end": (_INT, (_TEXT,)),
    "foundry_graph_find": (_POINTER, (_TEXT, _TEXT)),
    "foundry_graph_metadata": (_TEXT, (_POINTER,)),
    "foundry_graph_wait": (_INT, (_POINTER,)),
    "foundry_graph_launch": (_INT, (_POINTER, _POINTER)),
    "foundry_graph_exec": (_POINTER, (_POINTER,)),
    "foundry_commit": (_INT, ()),
    "foundry_count": (_VOID, (_TEXT, _LONG)),
    "foundry_counter": (_LONG, (_TEXT,)),
}


class ProcessHook:
    """The hook that was preloaded into this process."""

    def __init__(self, library: ctypes.CDLL) -> None:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = list(arguments)
        self._give_up = getattr(library, "foundry_graph_give_up", None)
        if self._give_up is not None:
            self._give_up.restype = None
            self._give_up.argtypes = [_POINTER, _TEXT]
        self._range_base = getattr(library, "foundry_range_base", None)
        if self._range_base is not None:
            self._range_base.restype = _LONG
            self._range_base.argtypes = [_INT]
        self._library = library
        self._launch = library.foundry_graph_launch

    def mode(self) -> Mode:
        """Whether the hook is armed, and for what."""
        return Mode(self._library.foundry_mode())

    def reason(self) -> str:
        """Why the last call of this thread answered no, or why the hook disarmed."""
        text = self._library.foundry_reason() or b""
        return str(text.decode(errors="replace"))

    def _check(self, what: str, result: int) -> None:
        if result == 0:
            return
        reason = self.reason()
        if result == UNAVAILABLE:
            raise UnavailableError(reason or f"{what} is unavailable")
        if result == MISUSE:
            raise MisuseError(f"{what}: {reason}")
        raise DriverError(f"{what} failed with CUresult {result}{f': {reason}' if reason else ''}", result=result)

    def scratch_begin(self, name: str) -> None:
        """Start taking device memory from the scratch arena."""
        self._check("foundry_scratch_begin", self._library.foundry_scratch_begin(name.encode()))

    def scratch_end(self) -> None:
        """End the innermost scratch phase."""
        self._check("foundry_scratch_end", self._library.foundry_scratch_end())

    def graph_begin(self, set_name: str, key: str) -> None:
        """Store the first graph that this thread instantiates from now on under (set, key)."""
        self._check("foundry_graph_begin", self._library.foundry_graph_begin(set_name.encode(), key.encode()))

    def graph_end(self, metadata: str | None) -> None:
        """End `graph_begin` and attach the metadata."""
        self._check(
            "foundry_graph_end", self._library.foundry_graph_end(None if metadata is None else metadata.encode())
        )

    def find(self, set_name: str, key: str) -> int:
        """Return the archive's graph of that name as a handle, or raise `UnavailableError`."""
        graph = self._library.foundry_graph_find(set_name.encode(), key.encode())
        if not graph:
            raise UnavailableError(self.reason())
        return int(graph)

    def metadata(self, graph: int) -> str | None:
        """Return the metadata that was attached at capture."""
        text = self._library.foundry_graph_metadata(graph)
        return None if text is None else str(text.decode())

    def wait(self, graph: int) -> None:
        """Build the graph's exec if the background has not, or raise `UnavailableError`."""
        self._check("foundry_graph_wait", self._library.foundry_graph_wait(graph))

    def exec(self, graph: int) -> int:
        """Return the `CUgraphExec` of a graph that was waited for. The hook owns it."""
        handle = self._library.foundry_graph_exec(graph)
        if not handle:
            raise UnavailableError(self.reason())
        return int(handle)

    def launch(self, graph: int, stream: int) -> None:
        """Launch a graph that was waited for."""
        result = self._launch(graph, stream)
        if result:
            self._check("foundry_graph_launch", result)

    def give_up(self, graph: int, reason: str) -> None:
        """Tell the report that the program captures this graph anew although the archive has it."""
        if self._give_up is not None:
            self._give_up(graph, reason.encode())

    def range_base(self, device: int) -> int:
        """Return where the hook's address range of a device begins, 0 if it has none there."""
        return int(self._range_base(device)) if self._range_base is not None else 0

    def commit(self) -> None:
        """Say that the program is ready to serve."""
        self._check("foundry_commit", self._library.foundry_commit())

    def count(self, name: str, add: int = 1) -> None:
        """Add to a named total of the report."""
        self._library.foundry_count(name.encode(), add)

    def counter(self, name: str) -> int:
        """Return a named total."""
        return int(self._library.foundry_counter(name.encode()))


@functools.cache
def load() -> Hook:
    """Return the hook of this process; an `AbsentHook` where there is none, or one that speaks another version."""
    process = ctypes.CDLL(None)
    try:
        process.foundry_capi_version.restype = ctypes.c_int
        found = process.foundry_capi_version()
        if found != VERSION:
            return AbsentHook(f"the hook speaks version {found} of its C interface, this package {VERSION}")
        return ProcessHook(process)
    except AttributeError:
        return AbsentHook()


@contextlib.contextmanager
def scratch(hook: Hook, name: str) -> Iterator[None]:
    """Take all device memory of the block from the scratch arena: a restore skips what happens in it.

    A hook that refuses is no reason to stop the program: the block then runs unmarked.
    """
    try:
        hook.scratch_begin(name)
    except FoundryError:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(FoundryError):
            hook.scratch_end()


def stores(hook: Hook) -> bool:
    """Whether a graph that is captured now is to be stored: in a capture, and in a restore that is an update."""
    mode = hook.mode()
    return mode is Mode.CAPTURE or (mode is Mode.RESTORE and os.environ.get(env.UPDATE) == "1")


class Label:
    """Filled in by the block of `labelled`: the metadata of the graph that it instantiated."""

    def __init__(self) -> None:
        self.metadata: str | None = None


@contextlib.contextmanager
def labelled(hook: Hook, set_name: str, key: str) -> Iterator[Label]:
    """Store the first graph that the block instantiates under (set, key), with the metadata that the block leaves.

    A hook that refuses is no reason to stop the program: the graph is then not stored.
    """
    label = Label()
    try:
        hook.graph_begin(set_name, key)
    except FoundryError:
        yield label
        return
    try:
        yield label
    finally:
        with contextlib.suppress(FoundryError):
            hook.graph_end(label.metadata)
