from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import released
import torch

from vllm.config import CUDAGraphMode
from vllm.forward_context import get_forward_context, is_forward_context_available

captured: list[str] = []
"""What counts captures that the engine knows of."""
compilation_counter = released.Counter(captured)


@dataclass
class CUDAGraphEntry:
    batch_descriptor: Any
    cudagraph: Any = None
    output: Any = None
    input_addresses: list[int] | None = None


def weak_ref_tensors(given: Any) -> Any:
    """Share the memory without owning it."""
    if isinstance(given, tuple):
        return tuple(weak_ref_tensors(item) for item in given)
    storage = given.untyped_storage()
    return torch.Tensor(given.shape, given.dtype, torch.Storage(storage.data_ptr(), storage.nbytes()), given.offset)


_pool: list[Any] = []


def get_global_graph_pool() -> Any:
    if not _pool:
        _pool.append(torch.cuda.graph_pool_handle())
    return _pool[0]


class CUDAGraphWrapper:
    def __init__(
        self,
        runnable: Callable[..., Any],
        vllm_config: Any,
        runtime_mode: CUDAGraphMode,
        cudagraph_options: Any = None,
    ) -> None:
        self.runnable, self.vllm_config, self.runtime_mode = runnable, vllm_config, runtime_mode
        self.graph_pool = get_global_graph_pool()
        self.is_debugging_mode = True
        self.cudagraph_options = types.SimpleNamespace(debug_log_enable=True, gc_disable=True, weak_ref_output=True)
        self.concrete_cudagraph_entries: dict[Any, CUDAGraphEntry] = {}

    def __getattr__(self, key: str) -> Any:
        return getattr(self.runnable, key)

    def __call__(self, *args: Any, **kwargs: Any) -> Any | None:
        if not is_forward_context_available():
            return self.runnable(*args, **kwargs)
        forward_context = get_forward_context()
        batch_descriptor = forward_context.batch_descriptor
        cudagraph_runtime_mode = forward_context.cudagraph_runtime_mode
        if cudagraph_runtime_mode == CUDAGraphMode.NONE or cudagraph_runtime_mode != self.runtime_mode:
            return self.runnable(*args, **kwargs)
        assert batch_descriptor is not None
        if batch_descriptor not in self.concrete_cudagraph_entries:
            self.concrete_cudagraph_entries[batch_descriptor] = CUDAGraphEntry(batch_descriptor=batch_descriptor)
        entry = self.concrete_cudagraph_entries[batch_descriptor]
        if entry.cudagraph is None:
            entry.input_addresses = [x.data_ptr() for x in args if isinstance(x, torch.Tensor)]
            cudagraph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(cudagraph, pool=self.graph_pool, stream=torch.cuda.current_stream()):
                output = self.runnable(*args, **kwargs)
            entry.output = weak_ref_tensors(output)
            entry.cudagraph = cudagraph
            compilation_counter.num_cudagraph_captured += 1
            return output
        addresses = [x.data_ptr() for x in args if isinstance(x, torch.Tensor)]
        assert addresses == entry.input_addresses, "input addresses differ from the capture's"
        entry.cudagraph.replay()
        return entry.output


released.take_over(globals(), "CUDAGraphWrapper", "__call__")
