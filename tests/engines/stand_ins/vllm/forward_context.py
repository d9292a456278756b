from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BatchDescriptor:
    num_tokens: int
    num_reqs: int | None = None
    uniform: bool = False
    has_lora: bool = False
    num_active_loras: int = 0


@dataclass
class ForwardContext:
    attn_metadata: Any
    cudagraph_runtime_mode: Any
    batch_descriptor: Any


_context: ForwardContext | None = None


def is_forward_context_available() -> bool:
    return _context is not None


def get_forward_context() -> ForwardContext:
    assert _context is not None
    return _context


@contextlib.contextmanager
def set_forward_context(
    attn_metadata: Any, cudagraph_runtime_mode: Any, batch_descriptor: Any = None
) -> Iterator[None]:
    global _context
    before, _context = _context, ForwardContext(attn_metadata, cudagraph_runtime_mode, batch_descriptor)
    try:
        yield
    finally:
        _context = before
