from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import released
import torch

from vllm.compilation.cuda_graph import captured, get_global_graph_pool
from vllm.config import CUDAGraphMode
from vllm.forward_context import BatchDescriptor, set_forward_context


@dataclass(frozen=True)
class BatchExecutionDescriptor:
    cg_mode: CUDAGraphMode
    num_tokens: int
    num_reqs: int | None
    uniform_token_count: int | None = None
    num_active_loras: int = 0


@contextlib.contextmanager
def graph_capture(device: Any) -> Iterator[None]:
    with torch.cuda.stream(torch.cuda.Stream(device=device)):
        yield


class CudaGraphManager:
    def __init__(self, vllm_config: Any, device: Any, cudagraph_mode: CUDAGraphMode) -> None:
        self.vllm_config, self.device, self.cudagraph_mode = vllm_config, device, cudagraph_mode
        self.graphs: dict[Any, Any] = {}
        self.pool = get_global_graph_pool()
        self.use_breakable_cg = False
        self._graphs_captured = False
        sizes = sorted(vllm_config.compilation_config.cudagraph_capture_sizes, reverse=True)
        self._capture_descs = {
            mode: [
                BatchExecutionDescriptor(mode, size, *((size, 1) if mode == CUDAGraphMode.FULL else (None, None)))
                for size in sizes
            ]
            for mode in cudagraph_mode.modes()
            if mode != CUDAGraphMode.NONE
        }

    def needs_capture(self) -> bool:
        return len(self._capture_descs) > 0

    @torch.inference_mode()
    def capture(self, create_forward_fn: Any, progress_bar_desc: str = "Capturing CUDA graphs") -> None:
        with graph_capture(device=self.device):
            for mode in [CUDAGraphMode.PIECEWISE, CUDAGraphMode.FULL]:
                if mode not in self._capture_descs:
                    continue
                for desc in self._capture_descs[mode]:
                    forward_fn = create_forward_fn(desc, warmup=True)
                    forward_fn(CUDAGraphMode.NONE)
                    if desc.cg_mode == CUDAGraphMode.PIECEWISE and not self.use_breakable_cg:
                        forward_fn(CUDAGraphMode.PIECEWISE)
                    else:
                        forward_fn = create_forward_fn(desc, warmup=False)
                        assert desc not in self.graphs, f"Graph already captured for {desc}"
                        graph = torch.cuda.CUDAGraph()
                        with torch.cuda.graph(graph, self.pool):
                            forward_fn(CUDAGraphMode.NONE)
                        self.graphs[desc] = graph
                        captured.append(str(desc))
        self._graphs_captured = True

    def run_fullgraph(self, desc: BatchExecutionDescriptor) -> Any:
        self.graphs[desc].replay()


prepared: list[str] = []
"""The mode of each batch whose inputs were prepared for a capture."""


class ModelCudaGraphManager(CudaGraphManager):
    def __init__(self, vllm_config: Any, device: Any, cudagraph_mode: CUDAGraphMode) -> None:
        super().__init__(vllm_config, device, cudagraph_mode)
        self.hidden_states: Any = None
        self.aux_hidden_states: list[Any] = []
        self.intermediate_tensors: Any = None

    def capture(self, model: Any, input_buffers: Any) -> None:
        def create_forward_fn(desc: BatchExecutionDescriptor, warmup: bool) -> Callable[[CUDAGraphMode], None]:
            prepared.append(desc.cg_mode.name)
            num_tokens = desc.num_tokens
            inputs = {"input_ids": input_buffers[:num_tokens], "positions": input_buffers[:num_tokens]}
            attn_metadata = None if desc.cg_mode == CUDAGraphMode.PIECEWISE else "metadata"

            def forward_fn(cg_mode: CUDAGraphMode) -> None:
                descriptor = BatchDescriptor(num_tokens) if cg_mode == CUDAGraphMode.PIECEWISE else None
                with set_forward_context(attn_metadata, cg_mode, descriptor):
                    model_output = model(**inputs)
                if cg_mode == CUDAGraphMode.PIECEWISE:
                    return
                if self.hidden_states is None:
                    self.hidden_states = torch.empty_like(model_output)
                self.hidden_states[:num_tokens] = model_output

            return forward_fn

        super().capture(create_forward_fn)

    def run_fullgraph(self, desc: BatchExecutionDescriptor) -> Any:
        super().run_fullgraph(desc)
        return self.hidden_states[: desc.num_tokens]


released.take_over(globals(), "CudaGraphManager", "capture", "run_fullgraph")
