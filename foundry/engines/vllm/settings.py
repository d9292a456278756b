"""What of vLLM's configuration a graph depends on, by name, and what this adapter does not do yet."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch


def objection(config: Any) -> str | None:
    """Say which feature of this start the adapter leaves alone, or None."""
    parallel, compilation, model = config.parallel_config, config.compilation_config, config.model_config
    multimodal = getattr(compilation, "cudagraph_mm_encoder", False)
    found = {
        "more than one GPU (tensor, pipeline or data parallel)": parallel.world_size > 1
        or parallel.data_parallel_size > 1,
        "LoRA": config.lora_config is not None,
        "speculative decoding": config.speculative_config is not None,
        "KV transfer": config.kv_transfer_config is not None,
        "sleep mode": model.enable_sleep_mode,
        "weight offloading": _offloads(config.offload_config),
        "micro-batches": parallel.use_ubatching,
        "breakable graphs (VLLM_USE_BREAKABLE_CUDAGRAPH)": _breakable(),
        "inductor graph partition": compilation.use_inductor_graph_partition,
        "graphs of the multimodal encoder": multimodal,
    }
    return next((name for name, is_so in found.items() if is_so), None)


def pins(config: Any, version: str) -> dict[str, Any]:
    """Name what must be equal before the first allocation of the KV cache."""
    model, cache, scheduler = config.model_config, config.cache_config, config.scheduler_config
    compilation = config.compilation_config
    return {
        "vllm": version,
        "torch": torch.__version__,
        "model": model_digest(model),
        "dtype": str(model.dtype),
        "quantization": str(model.quantization),
        "max_model_len": model.max_model_len,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "attention_backend": str(config.attention_config.backend),
        "kv_cache_dtype": str(cache.cache_dtype),
        "compilation_mode": str(compilation.mode),
        "cudagraph_mode": str(compilation.cudagraph_mode),
        "cudagraph_capture_sizes": list(compilation.cudagraph_capture_sizes or ()),
        "runner": "v2" if config.use_v2_model_runner else "v1",
        "kv_cache_memory_bytes": cache.kv_cache_memory_bytes,
        "num_gpu_blocks_override": cache.num_gpu_blocks_override,
        "gpu_memory_utilization": cache.gpu_memory_utilization,
        "configuration": config.compute_hash(),
    }


def ground(runner: Any) -> dict[str, Any]:
    """Name what must be equal when the first graph is captured: the KV cache, and what attends to it."""
    backends = [group.backend.get_name() for groups in runner.attn_groups for group in groups]
    return {"num_blocks": runner.kv_cache_config.num_blocks, "attention": ", ".join(backends)}


def model_digest(model: Any) -> str:
    """Digest the model's own description, whatever path it was read from."""
    described = dict(model.hf_config.to_dict())
    described.pop("_name_or_path", None)
    return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _offloads(offload: Any) -> bool:
    uva, prefetch = getattr(offload, "uva", None), getattr(offload, "prefetch", None)
    return bool(getattr(uva, "cpu_offload_gb", 0)) or bool(getattr(prefetch, "offload_group_size", 0))


def _breakable() -> bool:
    from vllm.compilation.breakable_cudagraph import is_breakable_cudagraph_enabled

    return bool(is_breakable_cudagraph_enabled())
