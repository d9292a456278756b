from __future__ import annotations

from collections.abc import Callable
from typing import Any

import released
import torch

from sglang.srt.model_executor.runner_backend_utils.breakable_cuda_graph.breakable_cuda_graph import (
    BreakableCUDAGraph,
    BreakableCUDAGraphCapture,
    eager_on_graph,
)


class BreakableCudaGraphBackend:
    deduped_cuda_graph = None

    def __init__(self, pool: Any) -> None:
        self._graphs: dict[Any, Any] = {}
        self._outputs: dict[Any, Any] = {}
        self._capture_inputs: dict[Any, Any] = {}
        self._pool, self._device_module, self._debug_eager = pool, torch.cuda, False
        self._tp_group = released.Group()
        self._capture_stream = torch.cuda.Stream()
        self._shared_output_buffer: Any = None

    def capture_one(
        self,
        shape_key: Any,
        forward_fn: Callable[[], Any],
        capture_inputs: Any = None,
        post_warmup_hook: Callable[[], None] | None = None,
    ) -> None:
        warmup_out = None
        for _ in range(2):
            self._device_module.synchronize()
            self._tp_group.barrier()
            warmup_out = forward_fn()
        graph = BreakableCUDAGraph(self.deduped_cuda_graph)
        size = shape_key.size
        if self._shared_output_buffer is None:
            self._shared_output_buffer = self._alloc_full_buffer(warmup_out, size)
        with BreakableCUDAGraphCapture(
            cuda_graph=graph, pool=self._pool, stream=self._capture_stream, barrier_fn=self._tp_group.barrier
        ):
            out = forward_fn()
            out_rows = self._output_rows(out, size)
            self._copy_output_to_buffer(out, self._shared_output_buffer, out_rows)
        self._graphs[shape_key] = graph
        self._outputs[shape_key] = self._slice_output(self._shared_output_buffer, out_rows)
        self._capture_inputs[shape_key] = capture_inputs

    def _output_rows(self, output: Any, cap: int) -> int:
        return int(min(cap, output.shape[0]))

    def _alloc_full_buffer(self, output: Any, size: int) -> Any:
        return output.new_empty((size, *output.shape[1:]))

    def _slice_output(self, output: Any, num_tokens: int) -> Any:
        return output[:num_tokens]

    def _copy_output_to_buffer(self, output: Any, output_buffer: Any, num_tokens: int) -> None:
        output_buffer[:num_tokens].copy_(output[:num_tokens])

    def replay(self, shape_key: Any, static_forward_batch: Any, **kwargs: Any) -> Any:
        self._graphs[shape_key].replay()
        return self._outputs[shape_key]


def missing() -> dict[str, Any]:
    return {"PPProxyTensors": type("PPProxyTensors", (), {}), "eager_on_graph": eager_on_graph}


released.take_over(
    globals(),
    "BreakableCudaGraphBackend",
    *("capture_one", "_output_rows", "_alloc_full_buffer", "_slice_output", "_copy_output_to_buffer"),
    missing=missing,
)
