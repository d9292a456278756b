from __future__ import annotations

import types
from typing import Any

import released
import torch

from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CUDAGraphMode
from vllm.forward_context import BatchDescriptor, set_forward_context
from vllm.model import Model
from vllm.v1.worker.gpu.cudagraph_utils import graph_capture
from vllm.v1.worker.gpu.model_runner import GPUModelRunner as _Common


class GPUModelRunner:
    def __init__(self, vllm_config: Any, device: Any) -> None:
        _Common.__init__(self, vllm_config, device)  # type: ignore[arg-type]
        self.parallel_config, self.lora_config = vllm_config.parallel_config, None
        self.load_config = types.SimpleNamespace(use_tqdm_on_load=False)

    def load_model(self) -> None:
        self.model: Any = Model(self.vllm_config)
        if CUDAGraphMode.FULL in self.compilation_config.cudagraph_mode.modes():
            self.model = CUDAGraphWrapper(self.model, self.vllm_config, runtime_mode=CUDAGraphMode.FULL)

    def initialize_kv_cache(self, kv_cache_config: Any) -> None:
        _Common.initialize_kv_cache(self, kv_cache_config)  # type: ignore[arg-type]

    @torch.inference_mode()
    def _dummy_run(
        self,
        num_tokens: int,
        cudagraph_runtime_mode: CUDAGraphMode | None = None,
        force_attention: bool = False,
        uniform_decode: bool = False,
        allow_microbatching: bool = True,
        skip_eplb: bool = False,
        is_profile: bool = False,
        create_mixed_batch: bool = False,
        remove_lora: bool = True,
        is_graph_capturing: bool = False,
        num_active_loras: int = 0,
        profile_seq_lens: int | None = None,
    ) -> tuple[Any, Any]:
        mode = cudagraph_runtime_mode or CUDAGraphMode.NONE
        attends = force_attention or mode == CUDAGraphMode.FULL
        full = BatchDescriptor(num_tokens, num_tokens, True)
        descriptor = full if mode == CUDAGraphMode.FULL else BatchDescriptor(num_tokens)
        with set_forward_context("metadata" if attends else None, mode, descriptor):
            hidden = self.model(input_ids=self.input_buffers[:num_tokens], positions=self.input_buffers[:num_tokens])
        return hidden, hidden

    @torch.inference_mode()
    def profile_run(self) -> None:
        self.profiled += 1
        self._dummy_run(self.max_num_tokens, is_profile=True)

    @torch.inference_mode()
    def profile_cudagraph_memory(self) -> int:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, torch.cuda.graph_pool_handle()):
            torch.empty(4).fill_(1)
        return 1

    def capture_model(self) -> int:
        with graph_capture(device=self.device):
            for mode in (CUDAGraphMode.PIECEWISE, CUDAGraphMode.FULL):
                if mode not in self.compilation_config.cudagraph_mode.modes():
                    continue
                sizes = sorted(self.compilation_config.cudagraph_capture_sizes, reverse=True)
                full = mode == CUDAGraphMode.FULL
                descs = [BatchDescriptor(size, size, True) if full else BatchDescriptor(size) for size in sizes]
                self._capture_cudagraphs(batch_descriptors=descs, cudagraph_runtime_mode=mode)
        return 1

    def _capture_cudagraphs(
        self, batch_descriptors: list[Any], cudagraph_runtime_mode: CUDAGraphMode, profiler: Any = None
    ) -> None:
        for desc in batch_descriptors:
            self._warmup_and_capture(desc, cudagraph_runtime_mode=cudagraph_runtime_mode)

    def maybe_remove_all_loras(self, lora_config: Any) -> None:
        pass

    def _warmup_and_capture(
        self,
        desc: Any,
        cudagraph_runtime_mode: CUDAGraphMode,
        profile_seq_lens: int | None = None,
        allow_microbatching: bool = False,
        num_warmups: int | None = None,
        profiler: Any = None,
    ) -> None:
        if num_warmups is None:
            num_warmups = self.compilation_config.cudagraph_num_of_warmups
        force_attention = cudagraph_runtime_mode == CUDAGraphMode.FULL
        for _ in range(num_warmups):
            self._dummy_run(
                desc.num_tokens,
                cudagraph_runtime_mode=CUDAGraphMode.NONE,
                force_attention=force_attention,
                uniform_decode=desc.uniform,
            )
        self._dummy_run(
            desc.num_tokens,
            cudagraph_runtime_mode=cudagraph_runtime_mode,
            uniform_decode=desc.uniform,
            is_graph_capturing=True,
        )

    def serve(self, tokens: Any, mode: CUDAGraphMode) -> list[int]:
        count = len(tokens)
        self.input_buffers[:count] = torch.tensor_of(tokens)
        full = mode == CUDAGraphMode.FULL
        descriptor = BatchDescriptor(count, count, True) if full else BatchDescriptor(count)
        with set_forward_context("metadata", mode, descriptor):
            inputs = self.input_buffers[:count]
            return list(self.model(input_ids=inputs, positions=inputs).tolist())


released.take_over(globals(), "GPUModelRunner", "_warmup_and_capture", "_capture_cudagraphs")
