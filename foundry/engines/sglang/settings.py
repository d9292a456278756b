"""What of SGLang's settings a graph depends on, by name, and what this adapter does not do yet."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from typing import Any

import torch

from foundry.engines.protocol import version_of

DECODE = ("full", "disabled")
PREFILL = ("breakable", "disabled")
DEDUP = "SGLANG_ENABLE_CUDA_GRAPH_DEDUP"
_EQUAL = (
    *("dtype", "quantization", "kv_cache_dtype", "context_length", "max_running_requests", "max_total_tokens"),
    *("mem_fraction_static", "chunked_prefill_size", "page_size", "sampling_backend", "load_format"),
    *("attention_backend", "decode_attention_backend", "prefill_attention_backend", "enable_deterministic_inference"),
)
"""Server arguments that must be as at capture."""


def objection(configurator: Any) -> str | None:
    """Say which feature of this start the adapter leaves alone, or None."""
    arguments, parallel = configurator.server_args, configurator.ps
    graphs = arguments.cuda_graph_config
    found = {
        "more than one GPU (tensor, pipeline, data or expert parallel)": max(
            parallel.tp_size, parallel.pp_size, parallel.dp_size, parallel.moe_ep_size, parallel.dcp_size
        )
        > 1,
        "LoRA": arguments.enable_lora,
        "speculative decoding": arguments.speculative_algorithm is not None,
        "memory saver": arguments.enable_memory_saver,
        "torch.compile of decode": arguments.enable_torch_compile,
        "weight offloading": bool(arguments.cpu_offload_gb),
        "prefill and decode side by side (pdmux)": arguments.enable_pdmux,
        "two batches overlapped": arguments.enable_two_batch_overlap,
        "disaggregation": arguments.disaggregation_mode != "null",
        "hierarchical sparse attention": arguments.enable_hisparse,
        "a KV cache that is resized after capture": configurator.post_capture_kv_active,
        "eager debugging of graphs": arguments.debug_cuda_graph,
        f"graphs that share executables ({DEDUP})": os.environ.get(DEDUP, "").lower() in ("1", "true", "yes", "on"),
        f"decode graphs of backend `{graphs.decode.backend}`": graphs.decode.backend not in DECODE,
        f"prefill graphs of backend `{graphs.prefill.backend}`": graphs.prefill.backend not in PREFILL,
    }
    return next((name for name, is_so in found.items() if is_so), None)


def pins(configurator: Any) -> dict[str, Any]:
    """Name what must be equal before the first allocation of the KV cache."""
    arguments = configurator.server_args
    graphs = arguments.cuda_graph_config
    return {
        "sglang": version_of("sglang"),
        "torch": torch.__version__,
        "model": model_digest(configurator.model_config),
        **{name: _plain(getattr(arguments, name)) for name in _EQUAL},
        "decode_graphs": [graphs.decode.backend, list(graphs.decode.bs or ())],
        "prefill_graphs": [graphs.prefill.backend, list(graphs.prefill.bs or ())],
    }


def ground(runner: Any) -> dict[str, Any]:
    """Name what must be equal when the first graph is captured: the KV cache, and what attends to it."""
    return {
        "max_total_num_tokens": runner.max_total_num_tokens,
        "max_running_requests": runner.max_running_requests,
        "attention": f"{runner.prefill_attention_backend_str}, {runner.decode_attention_backend_str}",
    }


def of_pool(config: Any) -> dict[str, Any]:
    """Describe the size of the memory pools as a note keeps it."""
    return dataclasses.asdict(config)


def model_digest(model: Any) -> str:
    """Digest the model's own description, whatever path it was read from."""
    described = dict(model.hf_config.to_dict())
    described.pop("_name_or_path", None)
    return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
