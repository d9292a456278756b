from __future__ import annotations

import types
from typing import Any


def server_args(*, decode: list[int], prefill: list[int], **features: Any) -> Any:
    """Make what stands for `ServerArgs`."""
    phase = types.SimpleNamespace
    made = types.SimpleNamespace(
        dtype="auto", quantization=None, kv_cache_dtype="auto", context_length=64, max_running_requests=None,
        max_total_tokens=None, mem_fraction_static=0.5, chunked_prefill_size=64, page_size=1,
        sampling_backend="pytorch", load_format="dummy", attention_backend="triton", decode_attention_backend=None,
        prefill_attention_backend=None,
        enable_deterministic_inference=False, enable_lora=False, speculative_algorithm=None, enable_memory_saver=False,
        enable_torch_compile=False, cpu_offload_gb=0, enable_pdmux=False, enable_two_batch_overlap=False,
        disaggregation_mode="null", enable_hisparse=False, debug_cuda_graph=False,
        cuda_graph_config=types.SimpleNamespace(
            decode=phase(backend="full", bs=decode), prefill=phase(backend="breakable", bs=prefill)
        ),
    )  # fmt: skip
    for name, value in features.items():
        setattr(made, name, value)
    return made
