"""A model runner with the capture loops of prefill and decode, largest first, and what serves from their graphs."""

from __future__ import annotations

import os
import types
from typing import Any

import torch
from triton.runtime.cache import triton_key

from sglang.srt.layers import radix_attention
from sglang.srt.mem_cache.kv_cache_configurator import KVCacheConfigurator
from sglang.srt.model import Model
from sglang.srt.model_executor.runner.shape_key import ShapeKey
from sglang.srt.model_executor.runner_backend.breakable_cuda_graph_backend import BreakableCudaGraphBackend
from sglang.srt.model_executor.runner_backend.full_cuda_graph_backend import FullCudaGraphBackend

TOKEN_BYTES = 64


class ModelRunner:
    def __init__(self, server_args: Any, free_tokens: int, attention: str) -> None:
        self.server_args, self.is_draft_worker, self.free_tokens = server_args, False, free_tokens
        self.model_config = types.SimpleNamespace(hf_config=types.SimpleNamespace(to_dict=_describe))
        self.prefill_attention_backend_str = self.decode_attention_backend_str = attention
        torch.cuda.current_device()
        self.load_model()

    def load_model(self) -> None:
        staged = torch.empty(1 << 16)
        self.model = Model()
        del staged

    def alloc_memory_pool(self, memory_pool_config: Any = None) -> None:
        configurator = KVCacheConfigurator(self.server_args, self.model_config, self.free_tokens)
        config = configurator.configure(pre_model_load_memory=1)
        self.max_total_num_tokens, self.max_running_requests = config.max_total_num_tokens, config.max_running_requests
        self.kv_cache = torch.empty(self.max_total_num_tokens * TOKEN_BYTES // 4)

    def init_cuda_graphs(self, capture_decode_cuda_graph: bool = True) -> None:
        triton_key()
        self.logits = torch.empty(8)
        graphs = self.server_args.cuda_graph_config
        self.input_ids = torch.empty(max([*graphs.prefill.bs, *graphs.decode.bs]))
        self.input_ids.fill_(0)
        pool = torch.cuda.graph_pool_handle()
        self.prefill_backend, self.decode_backend = BreakableCudaGraphBackend(pool), FullCudaGraphBackend(pool)
        for size in sorted(graphs.prefill.bs, reverse=True):
            self._capture_prefill(size)
        for size in sorted(graphs.decode.bs, reverse=True):
            self._capture_decode(size)

    def _batch(self, size: int) -> Any:
        lengths = torch.empty(1)
        return types.SimpleNamespace(
            input_ids=self.input_ids[:size], seq_lens=lengths, num_token_non_padded_cpu=size, batch_size=size
        )

    def _capture_prefill(self, size: int) -> None:
        forward_batch = self._batch(size)

        def run_once() -> Any:
            radix_attention.context.append(forward_batch)
            try:
                return self.model.body(forward_batch)
            finally:
                radix_attention.context.pop()

        self.prefill_backend.capture_one(ShapeKey(size), run_once, capture_inputs=None, post_warmup_hook=None)

    def _capture_decode(self, size: int) -> None:
        forward_batch = self._batch(size)

        def run_once() -> Any:
            return self.model.decode(forward_batch, self.logits)

        self.decode_backend.capture_one(ShapeKey(size), run_once, capture_inputs=None, post_warmup_hook=None)

    def prefill(self, ids: list[int]) -> list[int]:
        size = min(size for size in self.server_args.cuda_graph_config.prefill.bs if size >= len(ids))
        self.input_ids[: len(ids)].copy_(torch.tensor_of(ids))
        batch = self._batch(size)
        batch.num_token_non_padded_cpu = len(ids)
        radix_attention.context.append(batch)
        try:
            found = self.prefill_backend.replay(ShapeKey(size), batch)
        finally:
            radix_attention.context.pop()
        return list(found[: len(ids)].tolist())

    def decode(self, ids: list[int]) -> list[int]:
        self.input_ids[: len(ids)].copy_(torch.tensor_of(ids))
        found = self.decode_backend.replay(ShapeKey(len(ids)), None)
        assert found.hidden_states.tolist() == found.next_token_logits.tolist()
        return list(found.next_token_logits.tolist())


def _describe() -> dict[str, object]:
    model = os.environ.get("STAND_IN_MODEL", "")
    if model == "broken":
        raise ValueError("no description")
    return {"layers": 4 if model == "other" else 3, "_name_or_path": "here"}
