"""What goes into SGLang's graphs and comes out of them, in a form that an archive can hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from foundry.torch.tensors import UnstorableError

BATCH = "forward_batch"
"""Name of the variable that the runners' forward functions close over."""
LOGITS = "sglang.srt.layers.logits_processor"
_CLASS = "LogitsProcessorOutput"


def key_of(shape_key: Any) -> str:
    """Name a shape: its size, and what else tells it from others."""
    parts = [str(shape_key.size)]
    if shape_key.stream_idx is not None:
        parts.append(f"stream {shape_key.stream_idx}")
    if shape_key.variant_label is not None:
        parts.append(str(shape_key.variant_label))
    return " ".join(parts)


def inputs_of(forward: Callable[[], Any]) -> dict[str, Any]:
    """Give the tensors on the GPU of the batch that a forward function runs, by their names."""
    names = forward.__code__.co_freevars
    if BATCH not in names:
        raise UnstorableError(f"a forward function without a {BATCH}")
    batch = (forward.__closure__ or ())[names.index(BATCH)].cell_contents
    return {
        name: value
        for name, value in sorted(vars(batch).items())
        if isinstance(value, torch.Tensor) and value.device.type == "cuda"
    }


def flat(value: Any) -> Any:
    """Write SGLang's output class as a dictionary of its fields that are set; leave all others as they are."""
    if type(value).__name__ != _CLASS or type(value).__module__ != LOGITS:
        return value
    return {_CLASS: {name: item for name, item in vars(value).items() if item is not None}}


def unflat(value: Any) -> Any:
    """Make SGLang's output class again."""
    if type(value) is not dict or list(value) != [_CLASS]:
        return value
    import importlib

    fields = value[_CLASS]
    made = getattr(importlib.import_module(LOGITS), _CLASS)(next_token_logits=fields.get("next_token_logits"))
    for name, item in fields.items():
        setattr(made, name, item)
    return made
