"""A torch that is just enough for the adapters, on the driver API: each tensor is an allocation of the driver's.

Kernels are memsets and copies. Memory of a graph's pool is kept for good, as torch keeps its segments.
"""

from __future__ import annotations

import contextlib
import functools
import os
import types
from typing import Any

from cuda.bindings import driver

__version__ = os.environ.get("STAND_IN_TORCH_VERSION", "2.11.0")
strided = "strided"


def check(result: Any) -> Any:
    error, *values = result
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


class dtype:
    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize

    def __str__(self) -> str:
        return f"torch.{self.name}"


float32, int64, uint8, bool_ = dtype("float32", 4), dtype("int64", 8), dtype("uint8", 1), dtype("bool", 1)


class device:
    def __init__(self, kind: str, index: int = 0) -> None:
        self.type, self.index = kind, index

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Storage:
    def __init__(self, pointer: int, size: int, *, pool: Any = None, room: int = 0) -> None:
        self.pointer, self.size, self.pool, self.room = pointer, size, pool, room or size
        if pool is not None:
            blocks[pointer] = (pool, size)

    def data_ptr(self) -> int:
        return self.pointer

    def nbytes(self) -> int:
        return self.size

    def __del__(self) -> None:
        if self.pool is not None and not is_graph_pool(self.pool):
            blocks.pop(self.pointer, None)
            if self.pool == DEFAULT_POOL:
                cached.append((self.room, self.pointer))
            else:
                driver.cuMemFree(self.pointer)


DEFAULT_POOL = (0, 0)
cached: list[tuple[int, int]] = []
"""Free memory of the default pool, as (size, address): taken again where it is large enough, until it is emptied."""
blocks: dict[int, tuple[tuple[int, int], int]] = {}
pools: list[tuple[int, int]] = []
capturing: list[Any] = []


def is_graph_pool(pool: tuple[int, int]) -> bool:
    return pool[0] == 9


class Tensor:
    layout, is_quantized, requires_grad = strided, False, False

    def __init__(self, shape: tuple[int, ...], kind: dtype, storage: Storage, offset: int = 0) -> None:
        self.shape, self.dtype, self.storage, self.offset = tuple(shape), kind, storage, offset
        self.device = device("cuda")
        steps = [1]
        for size in reversed(self.shape[1:]):
            steps.insert(0, steps[0] * size)
        self._stride = tuple(steps[: len(self.shape)])

    def stride(self) -> tuple[int, ...]:
        return self._stride

    def storage_offset(self) -> int:
        return self.offset

    def new_empty(self, shape: Any, dtype: dtype | None = None) -> Tensor:
        return empty(shape, dtype=dtype or self.dtype)

    def untyped_storage(self) -> Storage:
        return self.storage

    def data_ptr(self) -> int:
        return self.storage.pointer + self.offset * self.dtype.itemsize

    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def element_size(self) -> int:
        return self.dtype.itemsize

    def is_conj(self) -> bool:
        return False

    is_neg = is_conj

    def set_(self, storage: Storage, offset: int, shape: Any, stride: Any) -> Tensor:
        self.storage, self.offset, self.shape, self._stride = storage, offset, tuple(shape), tuple(stride)
        return self

    def __getitem__(self, rows: slice) -> Tensor:
        count = len(range(*rows.indices(self.shape[0])))
        return Tensor((count, *self.shape[1:]), self.dtype, self.storage, self.offset)

    def __setitem__(self, rows: slice, value: Tensor) -> None:
        self[rows].copy_(value)

    def fill_(self, value: int) -> Tensor:
        check(driver.cuMemsetD32Async(self.data_ptr(), value, self.numel(), cuda.current_stream().cuda_stream))
        return self

    def copy_(self, other: Tensor) -> Tensor:
        size = self.numel() * self.dtype.itemsize
        stream = cuda.current_stream().cuda_stream
        check(driver.cuMemcpyDtoDAsync(self.data_ptr(), other.data_ptr(), size, stream))
        return self

    def tolist(self) -> list[int]:
        cuda.synchronize()
        data = bytearray(self.numel() * 4)
        check(driver.cuMemcpyDtoH(data, self.data_ptr(), len(data)))
        return list(memoryview(data).cast("I"))


class Parameter(Tensor):
    pass


def _pool() -> tuple[int, int]:
    if capturing:
        return capturing[-1]
    return pools[-1] if pools else DEFAULT_POOL


def _take(size: int) -> Storage:
    pool = _pool()
    fitting = [one for one in cached if one[0] >= size] if pool == DEFAULT_POOL else []
    if fitting:
        room, pointer = min(fitting)
        cached.remove((room, pointer))
        return Storage(pointer, size, pool=pool, room=room)
    return Storage(int(check(driver.cuMemAlloc(size))), size, pool=pool)


def empty(*shape: Any, dtype: dtype = float32, device: Any = None) -> Tensor:
    sizes = tuple(shape[0]) if shape and isinstance(shape[0], (list, tuple)) else shape
    tensor = Tensor(sizes, dtype, Storage(0, 0))
    size = tensor.numel() * dtype.itemsize
    if size:
        tensor.storage = _take(size)
    return tensor


def is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def empty_like(other: Tensor) -> Tensor:
    return empty(*other.shape, dtype=other.dtype)


def tensor_of(values: list[int]) -> Tensor:
    made = empty(len(values))
    check(
        driver.cuMemcpyHtoD(
            made.data_ptr(), memoryview(bytearray(b"".join(v.to_bytes(4, "little") for v in values))), 4 * len(values)
        )
    )
    return made


class inference_mode(contextlib.AbstractContextManager):  # type: ignore[type-arg]
    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __exit__(self, *args: object) -> None:
        return None

    def __call__(self, function: Any) -> Any:
        return functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))


no_grad = contextlib.nullcontext
nn = types.SimpleNamespace(Parameter=Parameter, Module=object)
_C = types.SimpleNamespace(
    _cuda_clearCublasWorkspaces=lambda: None,
    _cuda_getCurrentRawStream=lambda index: cuda.current_stream().cuda_stream,
    _construct_storage_from_data_pointer=lambda pointer, device, size: Storage(pointer, size),
)

from torch import cuda  # noqa: E402

accelerator = types.SimpleNamespace(
    synchronize=lambda *given: cuda.synchronize(),
    empty_cache=lambda: cuda.empty_cache(),
    get_memory_info=lambda: cuda.mem_get_info(),
)
