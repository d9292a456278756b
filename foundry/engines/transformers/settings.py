"""What of a start of continuous batching its graphs depend on, by name, and what this adapter does not do yet."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch

from foundry.engines.protocol import version_of
from foundry.torch.tensors import CONSTANTS

_EQUAL = (
    *("block_size", "num_blocks", "max_batch_tokens", "max_memory_percent", "max_requests_per_batch"),
    *("max_blocks_per_request", "use_async_batching", "q_padding_interval_size", "kv_padding_interval_size"),
    *("return_logprobs", "per_request_processors"),
)
"""Fields of the configuration that must be as at capture."""


def objection(handler: Any) -> str | None:
    """Say which feature of this start the adapter leaves alone, or None."""
    config = handler.cb_config
    distributed = getattr(torch, "distributed", None)
    ranks = distributed.get_world_size() if distributed is not None and distributed.is_initialized() else 1
    compiled = config.varlen_compile_config is not None or config.decode_compile_config is not None
    found = {"more than one GPU (tensor parallel)": ranks > 1, "torch.compile of the step": compiled}
    return next((name for name, is_so in found.items() if is_so), None)


def pins(handler: Any) -> dict[str, Any]:
    """Name what must be equal before the first allocation of the KV cache."""
    config = handler.cb_config
    described = dict(handler.config.to_dict())
    described.pop("_name_or_path", None)
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()[:16]
    return {
        "transformers": version_of("transformers"),
        "torch": torch.__version__,
        "model": digest,
        "graphs": list(config.cuda_graph_booleans),
        **{name: getattr(config, name) for name in _EQUAL},
    }


def ground(runner: Any, model: Any) -> dict[str, Any]:
    """Name what must be equal when the first graph is captured: the KV cache, attention, and how tokens are chosen."""
    return {
        "max_batch_tokens_found": runner.cache.max_batch_tokens,
        "num_blocks_found": runner.cache.num_blocks,
        "attention": str(getattr(model.config, "_attn_implementation", None)),
        "do_sample": runner.do_sample,
        "logprobs": runner.return_logprobs,
        "processors": [_described(one) for one in runner.logit_processor.logits_processor],
    }


def _described(processor: Any) -> str:
    """Name a processor with its numbers, which graphs hold as constants."""
    told = {name: value for name, value in vars(processor).items() if type(value) in CONSTANTS}
    return f"{type(processor).__name__} {json.dumps(told, sort_keys=True)}"
