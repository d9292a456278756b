"""Witnesses of programs on the driver API: the memory is spans of bytes on the device, named by address."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from foundry.witness.judging import LARGEST, LostError, UnfitError, seed_of

WORD = 4
PERIOD = 16_381
"""Words after which a filling repeats itself: a prime, so that no row or page looks like the next."""


@dataclass(frozen=True)
class Span:
    """Device memory that a graph reads or writes.

    With `low` and `high` it is 32-bit integers, and a witness may be made on any from low up to, not including, high.
    Without, it stays as it is.
    """

    address: int
    size: int
    low: int | None = None
    high: int | None = None


class Memory(Protocol):
    """Reaches device memory. All work is done when a call comes back."""

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes from the device."""

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes to the device."""

    def wait(self) -> None:
        """Wait until the context is idle."""


class DriverMemory:
    """Through the driver of this process, in the context that is current in the calling thread."""

    def __init__(self) -> None:
        self._library: Any = ctypes.CDLL("libcuda.so.1")

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._library, name)(*arguments)
        if result:
            raise RuntimeError(f"{name} failed with CUresult {result}")

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes from the device."""
        data = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes to the device."""
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))

    def wait(self) -> None:
        """Wait until the context is idle."""
        self._call("cuCtxSynchronize")


class SpanSubject:
    """A graph over spans. Made before the warm-up, whose traces must not get into what is not filled."""

    def __init__(self, memory: Memory, spans: Sequence[Span], *names: str) -> None:
        self._memory = memory
        self._spans = spans
        self._seed = seed_of(*names)
        self._before: list[bytes] = []
        self._unfit = _unfit(spans)
        self.launch: Callable[[], object] = lambda: None
        """Launches the graph on the legacy stream. Set before the subject is used."""
        try:
            if not self._unfit:
                memory.wait()
                self._before = [b"" if _filled(span) else memory.read(span.address, span.size) for span in spans]
        except RuntimeError as error:
            self._unfit = str(error)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Put the spans back at the end."""
        if self._unfit:
            raise UnfitError(self._unfit)
        self._memory.wait()
        saved = [self._memory.read(span.address, span.size) for span in self._spans]
        try:
            yield
        finally:
            try:
                self._memory.wait()
                for span, data in zip(self._spans, saved, strict=True):
                    self._memory.write(span.address, data)
                self._memory.wait()
            except RuntimeError as error:
                raise LostError(f"memory could not be put back after a replay for a witness: {error}") from error

    def choose(self) -> Any:
        """Give the seed, and the range of each span."""
        return {"seed": self._seed, "ranges": [[span.low, span.high] for span in self._spans]}

    def put(self, chosen: Any) -> Any:
        """Fill the spans as chosen."""
        if chosen.get("ranges") != [[span.low, span.high] for span in self._spans]:
            raise UnfitError("the spans have other ranges than at the capture")
        stated = {}
        for index, (span, before) in enumerate(zip(self._spans, self._before, strict=True)):
            data = before
            if span.low is not None and span.high is not None:
                data = filling(int(chosen["seed"]) + index, span.low, span.high, span.size)
            else:
                stated[f"memory[{index}]"] = hashlib.sha256(data).hexdigest()
            self._memory.write(span.address, data)
        self._memory.wait()
        return {"sizes": [span.size for span in self._spans], "kept": stated}

    def replay(self) -> dict[str, str]:
        """Launch, and digest all spans."""
        self.launch()
        self._memory.wait()
        return {
            f"memory[{index}]": hashlib.sha256(self._memory.read(span.address, span.size)).hexdigest()
            for index, span in enumerate(self._spans)
        }


def filling(seed: int, low: int, high: int, size: int) -> bytes:
    """Give bytes of 32-bit integers from low up to, not including, high."""
    words = array("I", hashlib.shake_256(seed.to_bytes(8, "little")).digest(PERIOD * WORD))
    if sys.byteorder == "big":
        words.byteswap()
    wide = high - low
    block = array("i", [low + word % wide for word in words[: min(PERIOD, -(-size // WORD))]]).tobytes()
    return (block * -(-size // len(block)))[:size] if size else b""


def _filled(span: Span) -> bool:
    return span.low is not None and span.high is not None


def _unfit(spans: Sequence[Span]) -> str:
    if not spans:
        return "the program names no memory for a witness"
    if (total := sum(span.size for span in spans)) > LARGEST:
        return f"{total} bytes are named for a witness, and {LARGEST} is the most"
    for index, span in enumerate(spans):
        if (span.low is None) != (span.high is None) or (_filled(span) and not _in_range(span)):
            return f"memory[{index}] has no range of 32-bit integers: {span.low} to {span.high}"
    return ""


def _in_range(span: Span) -> bool:
    low, high = span.low or 0, span.high or 0
    return -(1 << 31) <= low < high <= 1 << 31
