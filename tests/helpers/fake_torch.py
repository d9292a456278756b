"""A stand-in for the parts of torch that `foundry.torch` uses, so that its rules can be tested where torch is not.

It models what the rules are about: which pool an allocation comes from, what is captured and what runs, and how torch
keeps a generator's state for graphs (`style` "2.11": one pair of tensors a generator; "2.13": a pair a capture, out of
reach). Kernels are Python functions; memory is addresses, and values of single int64 cells.
"""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable
from typing import Any

from helpers.fake_hook import FakeHook

BASE = 0x400000000000
SEGMENT = 0x200000
CELL = 512


class DType:
    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize

    def __str__(self) -> str:
        return f"torch.{self.name}"


class Storage:
    def __init__(self, pointer: int, size: int, free: Callable[[], None] | None = None) -> None:
        self.pointer, self.size, self._free = pointer, size, free

    def data_ptr(self) -> int:
        return self.pointer

    def nbytes(self) -> int:
        return self.size

    def __del__(self) -> None:
        if self._free is not None:
            self._free()


class Device:
    def __init__(self, kind: str, index: int = 0) -> None:
        self.kind, self.index = kind, index

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class FakeTorch(types.ModuleType):
    """The module. One a test: it holds all state."""

    def __init__(self, hook: FakeHook, *, style: str = "2.11", version: str = "2.11.0") -> None:
        super().__init__("torch")
        self.hook, self.style, self.__version__ = hook, style, version
        self.events: list[str] = []
        self.cells: dict[int, int] = {}
        self.capturing: Any = None
        self.pools: list[Any] = []
        self.blocks: dict[int, tuple[tuple[int, int], int]] = {}
        self.addresses = itertools.count(BASE, SEGMENT)
        self.backend = "native"
        self.workspace: Any = None
        self.strided = "strided"
        self.uint8, self.int64, self.float32 = DType("uint8", 1), DType("int64", 8), DType("float32", 4)
        self.dtype, self.device = DType, Device
        self.nn = types.SimpleNamespace(Parameter=type("Parameter", (), {}))
        self._C = types.SimpleNamespace(
            _cuda_clearCublasWorkspaces=self._clear_workspaces,
            _cuda_getCurrentRawStream=lambda index: self.stream_now.cuda_stream,
            _construct_storage_from_data_pointer=lambda pointer, device, size: Storage(pointer, size),
        )
        self.Tensor, self.cuda = make_tensor(self), make_cuda(self)
        self.stream_now = self.cuda.Stream()
        self.no_grad = contextlib.nullcontext
        self.inference_mode = contextlib.nullcontext

    def take(self, size: int) -> Storage:
        """Allocate: from the graph's pool while capturing, else from the pool that is in use."""
        if self.capturing is not None and self.stream_now is self.capturing.stream:
            pool = self.capturing.pool_id
        else:
            pool = self.pools[-1] if self.pools else (0, 0)
        address = next(self.addresses)
        where = "scratch " if self.hook.scratch_depth else ""
        self.events.append(f"{where}allocate {pool}")
        self.blocks[address] = (pool, size)
        return Storage(address, size, lambda: self.blocks.pop(address, None) and None)

    def run(self, kernel: Callable[[], None]) -> None:
        """Launch a kernel, or capture it."""
        if self.capturing is not None and self.stream_now is self.capturing.stream:
            self.capturing.kernels.append(kernel)
        else:
            kernel()

    def matmul(self) -> int:
        """Call a library that keeps a workspace for each stream; return where it lies."""
        if self.workspace is None:
            self.workspace = self.take(SEGMENT)
        return int(self.workspace.pointer)

    def _clear_workspaces(self) -> None:
        self.events.append("clear workspaces")
        self.workspace = None

    def empty(self, *shape: int, dtype: DType | None = None, device: Any = None) -> Any:
        tensor = self.Tensor(dtype or self.float32, shape)
        size = tensor.numel() * tensor.dtype.itemsize
        tensor.storage = self.take(size) if size else Storage(0, 0)
        return tensor

    zeros = empty


def make_tensor(torch: FakeTorch) -> Any:
    class Tensor:
        layout, is_quantized, requires_grad = torch.strided, False, False

        def __init__(self, dtype: DType, shape: tuple[int, ...]) -> None:
            self.dtype, self.shape, self.offset = dtype, tuple(shape), 0
            self.device = Device("cuda")
            self.storage = Storage(0, 0)
            strides = [1]
            for size in reversed(self.shape[1:]):
                strides.insert(0, strides[0] * size)
            self.strides = tuple(strides[: len(self.shape)])

        def numel(self) -> int:
            count = 1
            for size in self.shape:
                count *= size
            return count

        def stride(self) -> tuple[int, ...]:
            return self.strides

        def storage_offset(self) -> int:
            return self.offset

        def untyped_storage(self) -> Storage:
            return self.storage

        def data_ptr(self) -> int:
            return self.storage.pointer + self.offset * self.dtype.itemsize

        def is_conj(self) -> bool:
            return False

        is_neg = is_conj

        def set_(self, storage: Storage, offset: int, shape: Any, stride: Any) -> Any:
            self.storage, self.offset, self.shape, self.strides = storage, offset, tuple(shape), tuple(stride)
            return self

        def fill_(self, value: int) -> Any:
            assert self.dtype is not torch.int64 or -(2**63) <= value < 2**63, "not an int64"
            address = self.data_ptr()
            torch.run(lambda: torch.cells.update({address: value}))
            return self

        def zero_(self) -> Any:
            return self.fill_(0)

        def item(self) -> int:
            return torch.cells[self.data_ptr()]

        def uniform_(self) -> Any:
            """Leave (seed, offset) where the numbers of a real kernel would be."""
            address, read = self.data_ptr(), torch.cuda.default_generators[0].kernel_input()
            torch.run(lambda: torch.cells.update({address: read()}))
            return self

    return Tensor


def make_cuda(torch: FakeTorch) -> Any:
    from helpers.fake_torch_cuda import Cuda

    return Cuda(torch)
