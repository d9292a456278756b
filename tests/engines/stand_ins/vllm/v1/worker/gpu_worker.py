from __future__ import annotations

import gc
import types
from typing import Any

import torch

BLOCK_BYTES = 64


class Worker:
    def __init__(self, vllm_config: Any) -> None:
        self.vllm_config, self.use_v2_model_runner = vllm_config, vllm_config.use_v2_model_runner
        self.cache_config = vllm_config.cache_config

    def init_device(self) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device())
        gc.collect()
        if self.use_v2_model_runner:
            from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Runner
        else:
            from vllm.v1.worker.gpu_model_runner import GPUModelRunner as Runner  # type: ignore[assignment]
        self.model_runner = Runner(self.vllm_config, self.device)

    def load_model(self) -> None:
        staged = torch.empty(1 << 16)
        self.model_runner.load_model()
        del staged

    def determine_available_memory(self) -> int:
        self.model_runner.profile_run()
        self.model_runner.profile_cudagraph_memory()
        torch.accelerator.empty_cache()
        self.available_kv_cache_memory_bytes = self.vllm_config.free_bytes
        return int(self.available_kv_cache_memory_bytes)

    def initialize_from_config(self, kv_cache_config: Any) -> None:
        self.model_runner.initialize_kv_cache(kv_cache_config)

    def compile_or_warm_up_model(self) -> str:
        self.model_runner.capture_model()
        return "compilation times"


def kv_cache_config(available: int) -> Any:
    return types.SimpleNamespace(num_blocks=available // BLOCK_BYTES)
