"""A model of three layers. Prefill breaks its graphs at attention; decode holds all in one."""

from __future__ import annotations

import os
from typing import Any

import torch

from sglang.srt.layers import radix_attention
from sglang.srt.layers.logits_processor import LogitsProcessorOutput

LAYERS = 3
calls: dict[str, int] = {"prefill": 0, "decode": 0}


class Model:
    def __init__(self) -> None:
        self.weights = [torch.nn.Parameter((4,), torch.float32, _filled(4, 100 + n).storage) for n in range(LAYERS)]

    def body(self, batch: Any) -> Any:
        calls["prefill"] += 1
        hidden = batch.input_ids
        for layer, weight in enumerate(self.weights):
            query, output = torch.empty(hidden.shape[0]), torch.empty(hidden.shape[0])
            query.copy_(hidden)
            query[:1].copy_(weight[:1])
            if radix_attention.KIND == "other":
                radix_attention.breakable_other_attention(query, output)
            elif radix_attention.KIND == "giving":
                output = radix_attention.breakable_giving_attention(query)
            else:
                op = radix_attention.breakable_unified_attention_with_output
                op(query, None, query, output, True, layer, use_mha_companion=False)
            hidden = output
        return hidden

    def decode(self, batch: Any, logits: Any) -> LogitsProcessorOutput:
        calls["decode"] += 1
        hidden = batch.input_ids
        for weight in self.weights:
            query = torch.empty(hidden.shape[0])
            query.copy_(hidden)
            query[:1].copy_(weight[:1])
            hidden = query
        if os.environ.get("STAND_IN_RANDOM"):
            torch.cuda.default_generators[0].offset += 4
        rows = logits[: hidden.shape[0]]
        rows.copy_(hidden)
        odd = {"odd": object()} if os.environ.get("STAND_IN_ODD_OUTPUT") else None
        return LogitsProcessorOutput(rows, hidden_states=hidden, customized_info=odd)


def _filled(count: int, value: int) -> Any:
    return torch.tensor_of([value] * count)
