from __future__ import annotations

import os
import types
from typing import Any

import torch

from vllm.config import CUDAGraphMode
from vllm.forward_context import BatchDescriptor, set_forward_context
from vllm.model import Model
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor, ModelCudaGraphManager


class GPUModelRunner:
    def __init__(self, vllm_config: Any, device: Any) -> None:
        self.vllm_config, self.device = vllm_config, device
        self.compilation_config = vllm_config.compilation_config
        self.max_num_tokens = vllm_config.scheduler_config.max_num_batched_tokens
        self.input_buffers = torch.empty(self.max_num_tokens)
        self.cudagraph_manager: Any = None
        self.profiled = 0

    def load_model(self) -> None:
        self.model = Model(self.vllm_config)

    def initialize_kv_cache(self, kv_cache_config: Any) -> None:
        self.kv_cache_config = kv_cache_config
        name = os.environ.get("STAND_IN_ATTENTION", "FLASH_ATTN")
        backend = types.SimpleNamespace(**({} if name == "broken" else {"get_name": lambda: name}))
        self.attn_groups = [[types.SimpleNamespace(backend=backend)]]
        mode = self.compilation_config.cudagraph_mode
        self.cudagraph_manager = ModelCudaGraphManager(self.vllm_config, self.device, mode)
        self.kv_cache = torch.empty(kv_cache_config.num_blocks * 16)

    @torch.inference_mode()
    def _dummy_run(self, num_tokens: int, *args: Any, skip_attn: bool = False, uniform_decode: bool = False,
                   skip_eplb: bool = False, is_profile: bool = False, **kwargs: Any) -> Any:  # fmt: skip
        with set_forward_context(None, CUDAGraphMode.NONE):
            return self.model(self.input_buffers[:num_tokens], self.input_buffers[:num_tokens])

    @torch.inference_mode()
    def profile_run(self) -> None:
        self.profiled += 1
        self._dummy_run(self.max_num_tokens, skip_attn=True, is_profile=True)

    def profile_cudagraph_memory(self) -> int:
        return 0

    @torch.inference_mode()
    def capture_model(self) -> int:
        if not self.cudagraph_manager.needs_capture():
            return 0
        self.cudagraph_manager.capture(self.model, self.input_buffers)
        return 1

    def serve(self, tokens: Any, mode: CUDAGraphMode) -> list[int]:
        """Run a batch as `execute_model` does."""
        count = len(tokens)
        self.input_buffers[:count] = torch.tensor_of(tokens)
        if mode == CUDAGraphMode.FULL:
            desc = BatchExecutionDescriptor(mode, count, count, 1)
            found: list[int] = self.cudagraph_manager.run_fullgraph(desc).tolist()
            return found
        with set_forward_context("metadata", mode, BatchDescriptor(count)):
            result: list[int] = self.model(self.input_buffers[:count], self.input_buffers[:count]).tolist()
            return result
