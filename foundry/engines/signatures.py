"""What a capture was given, as JSON that a restore compares: where tensors lie and how, and constants."""

from __future__ import annotations

import functools
from typing import Any

import torch

from foundry.torch.tensors import CONSTANTS, UnstorableError, dtype_of, reach

LARGEST_ON_HOST = 64
"""Most numbers of an input in host memory that are compared by value."""


def signature(value: Any, base: int) -> Any:
    """Describe inputs as JSON: addresses from `base`, shapes, types, constants. Parameters of any class are tensors."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise UnstorableError("an input is not a strided tensor")
        if value.device.type == "cpu":
            # A graph keeps such a value, not its address.
            if value.numel() > LARGEST_ON_HOST:
                raise UnstorableError(f"an input of {value.numel()} numbers lies in host memory")
            return ["host", value.tolist(), str(value.dtype)]
        return [value.data_ptr() - base, list(value.shape), list(value.stride()), str(value.dtype), str(value.device)]
    if type(value) in CONSTANTS:
        return value
    if type(value) in (tuple, list):
        return {"items": [signature(item, base) for item in value]}
    if type(value) is dict and all(type(name) is str for name in value):
        return {"named": {name: signature(item, base) for name, item in value.items()}}
    raise UnstorableError(f"an input is a {type(value).__qualname__}, which an archive cannot hold")


def is_tensor(value: Any) -> bool:
    """Whether a part of a signature describes a tensor of the device."""
    return type(value) is list and len(value) == 5 and type(value[1]) is list and type(value[2]) is list


def reach_of(tensor: Any) -> int:
    """Return the bytes from the first element of a tensor in a signature to the end of its last."""
    _, shape, strides, dtype, _ = tensor
    return reach(shape, strides, _item_size(dtype))


@functools.cache
def _item_size(dtype: str) -> int:
    return int(dtype_of(dtype).itemsize)
