"""Attention as an operation that breaks graphs. What it needs of the batch comes from the context."""

from __future__ import annotations

import os
from typing import Any

import torch

from sglang.srt.model_executor.runner_backend_utils.breakable_cuda_graph.breakable_cuda_graph import eager_on_graph

context: list[Any] = []
_workspace: list[Any] = []
ran: list[int] = []


def unified_attention_with_output(
    query: Any,
    key: Any,
    value: Any,
    output: Any,
    save_kv_cache: bool,
    layer_id: int,
    *,
    use_mha_companion: bool = False,
) -> None:
    if not _workspace:
        _workspace.append(torch.empty(1 << 12))
    ran.append(layer_id)
    count = context[-1].num_token_non_padded_cpu
    between = torch.empty(count)
    between.copy_(query[:count])
    output[:count].copy_(between)


def other_attention(query: Any, output: Any) -> None:
    output.copy_(query)


def giving_attention(query: Any) -> Any:
    output = torch.empty_like(query)
    output.copy_(query)
    return output


breakable_unified_attention_with_output = eager_on_graph(True)(unified_attention_with_output)
breakable_other_attention = eager_on_graph(True)(other_attention)
breakable_giving_attention = eager_on_graph(True)(giving_attention)
KIND = os.environ.get("STAND_IN_ATTENTION_KIND", "unified")
