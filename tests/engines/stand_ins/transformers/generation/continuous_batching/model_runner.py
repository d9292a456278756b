from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from transformers.generation.continuous_batching.input_outputs import ContinuousBatchingAsyncIOs

calls: list[int] = []


class ModelRunner:
    def __init__(self, logit_processor: Any, cb_config: Any, inputs_and_outputs: Any, cache: Any) -> None:
        self.logit_processor, self.cb_config, self.cache = logit_processor, cb_config, cache
        self.inputs_and_outputs, self.do_sample, self.return_logprobs = inputs_and_outputs, False, False
        self.mem_pool = torch.cuda.MemPool()
        self.graph_pool_id = torch.cuda.graph_pool_handle()

    def compute_batch(self, model: Any, batch_data: dict[str, Any]) -> None:
        output_ids, stream = self.inputs_and_outputs.output_ids, self.inputs_and_outputs.compute_stream
        graph = self.inputs_and_outputs.get_graph()
        if graph is not None:
            with torch.cuda.stream(stream):
                graph.replay()
        else:
            args = (model, batch_data, None, output_ids, output_ids)
            self._capture_graph(self._forward_process_and_sample, stream, *args)
        torch.cuda.synchronize()

    def _capture_graph(self, forward_fn: Callable[..., Any], compute_stream: Any, *args: Any) -> None:
        with torch.cuda.stream(compute_stream), torch.cuda.use_mem_pool(self.mem_pool):
            forward_fn(*args)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=compute_stream, pool=self.graph_pool_id, capture_error_mode="thread_local"):
            forward_fn(*args)
        self.inputs_and_outputs.set_graph(graph)

    def _forward_process_and_sample(
        self, model: Any, batch_data: dict[str, Any], carry_over_ids: Any, prev_output_ids: Any, output_ids: Any
    ) -> None:
        calls.append(batch_data["input_ids"].shape[0])
        if os.environ.get("STAND_IN_RANDOM"):
            torch.cuda.default_generators[0].offset += 4
        output_ids[: batch_data["input_ids"].shape[0]].copy_(model(batch_data["input_ids"]))

    def warmup(self, model: Any) -> None:
        both = isinstance(self.inputs_and_outputs, ContinuousBatchingAsyncIOs)
        for _ in range(1 + both):
            self._one(model, self.cache.max_batch_tokens, decode=False)
            for size in (1, 2, 4):
                self._one(model, size, decode=True)
            if both:
                self.inputs_and_outputs.swap_io_pairs()

    def _one(self, model: Any, size: int, *, decode: bool) -> None:
        self.inputs_and_outputs.prepare([0] * size, size, decode=decode)
        self.compute_batch(model, self.inputs_and_outputs.get_model_kwargs())
