from __future__ import annotations

import types
from typing import Any

import torch


class ContinuousBatchingIOs:
    def __init__(self, max_batch_tokens: int) -> None:
        self.input_ids = torch.empty(max_batch_tokens)
        self.output_ids = torch.empty(max_batch_tokens)
        self.compute_stream = torch.cuda.Stream()
        self.use_block_table, self.num_q_tokens, self.graphs = False, 0, {}

    def prepare(self, ids: list[int], size: int, *, decode: bool) -> None:
        self.use_block_table, self.num_q_tokens = decode, size
        self.input_ids.fill_(0)
        self.input_ids[: len(ids)].copy_(torch.tensor_of(ids))
        torch.cuda.synchronize()

    def get_model_kwargs(self) -> dict[str, Any]:
        return {
            "input_ids": self.input_ids[: self.num_q_tokens],
            "cache": types.SimpleNamespace(),
            "max_seqlen_q": self.num_q_tokens,
            "attention_mask": {"full_attention": None},
        }

    def _get_graph_key(self) -> tuple[int, ...]:
        return (self.num_q_tokens,) if self.use_block_table else (self.num_q_tokens, 64)

    def get_graph(self) -> Any:
        return self.graphs.get(self._get_graph_key())

    def set_graph(self, graph: Any) -> None:
        self.graphs[self._get_graph_key()] = graph


class ContinuousBatchingAsyncIOs:
    def __init__(self, max_batch_tokens: int) -> None:
        pairs = [ContinuousBatchingIOs(max_batch_tokens) for _ in range(2)]
        self.io_pairs = [types.SimpleNamespace(device_io=pair, host_io=pair) for pair in pairs]
        self.current_pair, self.compute_stream = 0, pairs[0].compute_stream

    @property
    def use_block_table(self) -> bool:
        return bool(self._now.use_block_table)

    @property
    def output_ids(self) -> Any:
        return self._now.output_ids

    @property
    def _now(self) -> Any:
        return self.io_pairs[self.current_pair].device_io

    def swap_io_pairs(self) -> None:
        self.current_pair = 1 - self.current_pair

    def prepare(self, ids: list[int], size: int, *, decode: bool) -> None:
        self._now.prepare(ids, size, decode=decode)

    def get_model_kwargs(self) -> Any:
        return self._now.get_model_kwargs()

    def get_graph(self) -> Any:
        return self._now.get_graph()

    def set_graph(self, graph: Any) -> None:
        self._now.set_graph(graph)
