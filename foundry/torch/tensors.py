"""Inputs as a signature that is compared, outputs as a description that is rebuilt over recorded addresses.

Both are JSON. Containers are exactly tuple, list and dict; leaves are strided tensors on the graph's device and
plain constants.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

CONSTANTS = (bool, int, float, str, type(None))


class UnstorableError(Exception):
    """A value that an archive cannot give back; the message says where it stands and why."""


def signature(value: Any, device: torch.device, where: str, base: int = 0) -> Any:
    """Describe what must be the same at capture and restore: addresses from `base`, shapes, types, constants."""
    if isinstance(value, torch.Tensor):
        require_plain(value, device, where)
        return {
            "pointer": value.data_ptr() - base,
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "dtype": str(value.dtype),
            "device": str(value.device),
        }
    return _nested(value, where, lambda item, path: signature(item, device, path, base))


def describe(value: Any, device: torch.device, inputs: Any) -> dict[str, Any]:
    """Describe outputs so that `rebuild` can make them again. A storage that is an input's is named by its place."""
    owners: dict[int, int] = {}
    for index, tensor in enumerate(tensors_of(inputs)):
        if tensor.untyped_storage().nbytes():
            owners.setdefault(tensor.untyped_storage().data_ptr(), index)
    storages: list[dict[str, Any]] = []
    known: dict[tuple[int, int], int] = {}

    def tree(item: Any, where: str) -> Any:
        if not isinstance(item, torch.Tensor):
            return _nested(item, where, tree)
        require_plain(item, device, where)
        if item.requires_grad:
            raise UnstorableError(f"{where} requires grad; run under torch.no_grad()")
        storage = item.untyped_storage()
        identity = (storage.data_ptr(), storage.nbytes())
        if identity not in known:
            known[identity] = len(storages)
            storages.append({"pointer": identity[0], "bytes": identity[1], "input": owners.get(identity[0])})
        return {
            "storage": known[identity],
            "offset": item.storage_offset(),
            "shape": list(item.shape),
            "stride": list(item.stride()),
            "dtype": str(item.dtype),
        }

    return {"tree": tree(value, "output"), "storages": storages}


def rebuild(description: dict[str, Any], device: torch.device, inputs: Any) -> Any:
    """Make the outputs again, without a copy: the memory is the hook's or an input's, and is never freed from here."""
    given = list(tensors_of(inputs))
    storages: list[Any] = []
    for entry in description["storages"]:
        if entry["input"] is not None:
            storages.append(given[entry["input"]].untyped_storage())
        else:
            storages.append(storage_at(entry["pointer"], entry["bytes"], device))

    def leaf(item: dict[str, Any]) -> torch.Tensor:
        tensor = torch.empty(0, dtype=dtype_of(item["dtype"]), device=device)
        return tensor.set_(storages[item["storage"]], item["offset"], item["shape"], item["stride"])

    # Under no_grad or not: nothing here requires gradients.
    return _unnested(description["tree"], leaf)


def storage_at(pointer: int, size: int, device: torch.device) -> Any:
    """Return a storage over memory that torch does not own."""
    if not size:
        return torch.empty(0, dtype=torch.uint8, device=device).untyped_storage()
    construct = getattr(torch._C, "_construct_storage_from_data_pointer", None)
    if construct is not None:
        return construct(pointer, device, size)
    return torch.as_tensor(_Span(pointer, size), device=device).untyped_storage()


def tensor_at(pointer: int, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return a one-dimensional tensor over memory that torch does not own."""
    size = count * dtype.itemsize
    return torch.empty(0, dtype=dtype, device=device).set_(storage_at(pointer, size, device), 0, (count,), (1,))


@functools.cache
def dtype_of(name: str) -> torch.dtype:
    """Turn `str(dtype)` back into the type."""
    found = getattr(torch, name.removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise UnstorableError(f"this torch has no type {name}")
    return found


def reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Return the bytes from a tensor's first element to the end of its last."""
    if 0 in shape:
        return 0
    last = 0
    for index, size in enumerate(shape):
        last += (size - 1) * strides[index]
    return (1 + last) * itemsize


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a nesting, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_of(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_of(item)


def require_plain(tensor: torch.Tensor, device: torch.device, where: str) -> None:
    """Refuse a tensor that is more than a strided view of memory on the device."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise UnstorableError(f"{where} is a {type(tensor).__qualname__}, not a plain tensor")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        raise UnstorableError(f"{where} is not a plain strided tensor")
    if tensor.device != device:
        raise UnstorableError(f"{where} is on {tensor.device}, the graph on {device}")


class _Span:
    """Raw bytes, for torch versions that build tensors from `__cuda_array_interface__` only."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__ = {"data": (pointer, False), "shape": (size,), "typestr": "|u1", "version": 2}


def _nested(value: Any, where: str, visit: Any) -> Any:
    if type(value) in CONSTANTS:
        return {"value": value}
    if type(value) in (tuple, list):
        return {type(value).__name__: [visit(item, f"{where}[{index}]") for index, item in enumerate(value)]}
    if type(value) is dict:
        pairs = []
        for name, item in value.items():
            if type(name) not in CONSTANTS:
                raise UnstorableError(f"{where} has a key of type {type(name).__qualname__}")
            pairs.append([name, visit(item, f"{where}[{name!r}]")])
        return {"dict": pairs}
    raise UnstorableError(f"{where} is a {type(value).__qualname__}, which an archive cannot hold")


def _unnested(node: dict[str, Any], leaf: Any) -> Any:
    if "storage" in node:
        return leaf(node)
    if "value" in node:
        return node["value"]
    if "tuple" in node:
        return tuple([_unnested(item, leaf) for item in node["tuple"]])
    if "list" in node:
        return [_unnested(item, leaf) for item in node["list"]]
    return {name: _unnested(item, leaf) for name, item in node["dict"]}
