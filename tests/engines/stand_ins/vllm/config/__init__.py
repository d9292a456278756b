from __future__ import annotations

import enum
import hashlib
import types
from typing import Any


class CUDAGraphMode(enum.Enum):
    NONE = 0
    PIECEWISE = 1
    FULL = 2
    FULL_AND_PIECEWISE = (FULL, PIECEWISE)

    def is_valid_runtime_mode(self) -> bool:
        return not isinstance(self.value, tuple)

    def modes(self) -> list[CUDAGraphMode]:
        return [CUDAGraphMode(part) for part in self.value] if isinstance(self.value, tuple) else [self]


def config(*, mode: str, sizes: list[int], v2: bool, max_len: int = 64, compiled: bool = True, **features: Any) -> Any:
    """Make what stands for a `VllmConfig`."""
    made = types.SimpleNamespace(
        model_config=types.SimpleNamespace(
            hf_config=types.SimpleNamespace(to_dict=lambda: {"layers": 3, "_name_or_path": "here"}),
            dtype="float32", quantization=None, max_model_len=max_len, enable_sleep_mode=False,
        ),
        cache_config=types.SimpleNamespace(
            cache_dtype="auto", kv_cache_memory_bytes=None, num_gpu_blocks_override=None, gpu_memory_utilization=0.5
        ),
        scheduler_config=types.SimpleNamespace(max_num_seqs=max(sizes), max_num_batched_tokens=max_len),
        parallel_config=types.SimpleNamespace(
            world_size=1, data_parallel_size=1, use_ubatching=False, rank=0, data_parallel_index=0
        ),
        compilation_config=types.SimpleNamespace(
            mode=types.SimpleNamespace(name="VLLM_COMPILE" if compiled else "NONE"), backend="inductor",
            cudagraph_mode=CUDAGraphMode[mode], cudagraph_capture_sizes=sizes, cudagraph_num_of_warmups=1,
            use_inductor_graph_partition=False, cudagraph_mm_encoder=False,
        ),
        attention_config=types.SimpleNamespace(backend="FLASH_ATTN"),
        offload_config=types.SimpleNamespace(
            uva=types.SimpleNamespace(cpu_offload_gb=0), prefetch=types.SimpleNamespace(offload_group_size=0)
        ),
        lora_config=None, speculative_config=None, kv_transfer_config=None, use_v2_model_runner=v2,
    )  # fmt: skip
    for name, value in features.items():
        setattr(made, name, value)
    made.compute_hash = lambda: hashlib.sha256(repr((mode, sizes, max_len)).encode()).hexdigest()[:10]
    return made
