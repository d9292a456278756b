from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import released
import torch


class FullCudaGraphBackend:
    def __init__(self, pool: Any) -> None:
        self._graphs: dict[Any, Any] = {}
        self._outputs: dict[Any, Any] = {}
        self._pool, self._device_module, self._memory_saver_adapter = pool, torch.cuda, None
        self._tp_group = released.Group()
        self._capture_stream = torch.cuda.Stream()

    def capture_one(
        self,
        shape_key: Any,
        forward_fn: Callable[[], Any],
        capture_inputs: Any = None,
        post_warmup_hook: Callable[[], None] | None = None,
    ) -> None:
        for _ in range(2):
            self._device_module.synchronize()
            self._tp_group.barrier()
            forward_fn()
            if post_warmup_hook is not None:
                post_warmup_hook()
        graph = torch.cuda.CUDAGraph()
        with self._device_module.graph(cuda_graph=graph, pool=self._pool, stream=self._capture_stream):
            out = forward_fn()
        self._graphs[shape_key] = graph
        self._outputs[shape_key] = out

    def replay(self, shape_key: Any, static_forward_batch: Any, **kwargs: Any) -> Any:
        self._graphs[shape_key].replay()
        return self._outputs[shape_key]


def missing() -> dict[str, Any]:
    return {"partial": partial, "GPU_MEMORY_TYPE_CUDA_GRAPH": "graph"}


released.take_over(globals(), "FullCudaGraphBackend", "capture_one", missing=missing)
