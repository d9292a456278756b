"""Spans of device memory that tensors cover: kept, filled with seeded numbers, compared, put back.

Works on addresses, not on tensors, so that autograd sees nothing of it. Allocates beside it no more than a chunk and
what `save` returns. None of it touches torch's default generator.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from foundry.torch.tensors import dtype_of, reach, tensor_at

CHUNK = 16 << 20
SAMPLE = 4096
POISON = 0xA5
FILLED = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
"""Types that any value in the range of those found is safe for. Integers may be indices, and are not filled."""
DRAWN = ("float16", "bfloat16", "float32", "float64")
"""Those of them that torch draws numbers of; the others are converted."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Span:
    """Bytes of the device that one or more tensors cover. `dtype` is their type if it can be filled, else empty."""

    name: str
    pointer: int
    size: int
    dtype: str


@dataclass(frozen=True)
class Fill:
    """Seeded numbers from low to high."""

    seed: int
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """What differs from the expected bytes: how many, and a digest of where they lie and what they are."""

    count: int
    digest: str


def leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield what a nesting holds with its place, in order: tensors and constants."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{where}[{name!r}]")
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from leaves(item, f"{where}[{index}]")
    else:
        yield where, value


def tensors(value: Any, where: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a nesting with their places."""
    return ((place, item) for place, item in leaves(value, where) if isinstance(item, torch.Tensor))


def spans_of(named: Iterable[tuple[str, torch.Tensor]]) -> list[Span]:
    """Give the bytes that tensors cover, each byte once, by address. A span has the name of the first tensor in it."""
    found: list[Span] = []
    pieces = [Span(name, tensor.data_ptr(), _reach(tensor), _kind(tensor)) for name, tensor in named]
    for piece in sorted((piece for piece in pieces if piece.size), key=lambda piece: piece.pointer):
        last = found[-1] if found else None
        if last is None or piece.pointer >= last.pointer + last.size:
            found.append(piece)
            continue
        end = max(last.pointer + last.size, piece.pointer + piece.size)
        aligned = not piece.dtype or (piece.pointer - last.pointer) % int(dtype_of(piece.dtype).itemsize) == 0
        dtype = last.dtype if last.dtype == piece.dtype and aligned else ""
        found[-1] = Span(last.name, last.pointer, end - last.pointer, dtype)
    return found


def _reach(tensor: torch.Tensor) -> int:
    return reach([int(size) for size in tensor.shape], tensor.stride(), int(tensor.dtype.itemsize))


def _kind(tensor: torch.Tensor) -> str:
    name = str(tensor.dtype)
    return name if name.removeprefix("torch.") in FILLED else ""


def outside(span: Span, taken: Sequence[Span]) -> list[Span]:
    """Give the parts of a span that none of the others covers. These are by address, as `spans_of` gives them."""
    parts: list[Span] = []
    begin, end = span.pointer, span.pointer + span.size
    for other in taken:
        if other.pointer < end and begin < other.pointer + other.size:
            if begin < other.pointer:
                parts.append(replace(span, pointer=begin, size=other.pointer - begin, dtype=""))
            begin = other.pointer + other.size
    if begin < end:
        parts.append(replace(span, pointer=begin, size=end - begin, dtype=""))
    return parts


def _quietly(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Run without autograd and without a trace in version counters."""

    @functools.wraps(function)
    def run(*arguments: Any) -> Answer:
        with torch.inference_mode():
            return function(*arguments)

    return run


def room(device: torch.device) -> int:
    """Return how many bytes of the device are free."""
    return int(torch.cuda.mem_get_info(device)[0])


@_quietly
def save(span: Span, device: torch.device) -> torch.Tensor:
    """Return a copy of the bytes, on the device."""
    return _bytes(span, device).clone()


@_quietly
def put(span: Span, device: torch.device, saved: torch.Tensor) -> None:
    """Put back what `save` returned."""
    _bytes(span, device).copy_(saved)


@_quietly
def poison(span: Span, device: torch.device) -> None:
    """Fill with bytes that nobody writes, so that what is not written is known from what is."""
    _bytes(span, device).fill_(POISON)


@_quietly
def bounds(span: Span, device: torch.device) -> tuple[float, float]:
    """Give a range for numbers like those that stand there: its ends are 0 or a power of two."""
    low = high = 0.0
    whole = _numbers(span, device)
    for begin in range(0, whole.numel(), CHUNK):
        ends = whole[begin : begin + CHUNK].float().aminmax()
        low, high = min(low, float(ends.min)), max(high, float(ends.max))
    largest = max(-low, high)
    if not math.isfinite(low + high) or largest == 0 or math.isnan(largest):
        return 0.0, 1.0
    power = 2.0 ** max(-8, min(8, math.ceil(math.log2(largest))))
    return (-power if low < 0 else 0.0), power


@_quietly
def fill(span: Span, device: torch.device, chosen: Fill) -> None:
    """Fill with numbers."""
    whole = _bytes(span, device)
    for begin, values in _filling(span, device, chosen):
        whole[begin : begin + values.numel()].copy_(values)


@_quietly
def changes(span: Span, device: torch.device, expected: Fill | torch.Tensor) -> Change | None:
    """Compare with what `fill` or `put` made of it."""
    whole = _bytes(span, device)
    digest = hashlib.sha256()
    count = 0
    for begin, values in _expected(span, device, expected):
        found = whole[begin : begin + values.numel()]
        places = (found != values).nonzero().flatten()
        if places.numel():
            count += places.numel()
            digest.update(begin.to_bytes(8, "little"))
            digest.update(_host(places))
            digest.update(_host(found[places]))
    return Change(count, digest.hexdigest()) if count else None


@_quietly
def sample(span: Span, device: torch.device) -> bytes:
    """Return the first bytes."""
    return _host(_bytes(span, device)[:SAMPLE])


@_quietly
def host_bytes(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor's elements in their order, as if it were contiguous."""
    return _host(tensor.detach().contiguous())


@_quietly
def write(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    """Copy values into a tensor of the same shape, and tell whether that changed anything."""
    before = host_bytes(tensor)
    tensor.copy_(value)
    return host_bytes(tensor) != before


def _bytes(span: Span, device: torch.device) -> torch.Tensor:
    return tensor_at(span.pointer, span.size, torch.uint8, device)


def _numbers(span: Span, device: torch.device) -> torch.Tensor:
    dtype = dtype_of(span.dtype)
    return tensor_at(span.pointer, span.size // dtype.itemsize, dtype, device)


def _filling(span: Span, device: torch.device, chosen: Fill) -> Iterator[tuple[int, torch.Tensor]]:
    dtype = dtype_of(span.dtype)
    drawn = dtype if span.dtype.removeprefix("torch.") in DRAWN else torch.float32
    generator = torch.Generator(device)
    generator.manual_seed(chosen.seed)
    for begin in range(0, span.size, CHUNK):
        count = min(CHUNK, span.size - begin) // dtype.itemsize
        values = torch.empty(count, dtype=drawn, device=device)
        values.uniform_(chosen.low, chosen.high, generator=generator)
        yield begin, values.to(dtype).view(torch.uint8)


def _expected(span: Span, device: torch.device, expected: Fill | torch.Tensor) -> Iterable[tuple[int, torch.Tensor]]:
    if isinstance(expected, Fill):
        return _filling(span, device, expected)
    return ((begin, expected[begin : begin + CHUNK]) for begin in range(0, span.size, CHUNK))


def _host(tensor: torch.Tensor) -> bytes:
    there = tensor.cpu()
    size = there.numel() * there.dtype.itemsize
    return ctypes.string_at(there.data_ptr(), size) if size else b""
