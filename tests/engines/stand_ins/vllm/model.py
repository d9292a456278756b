"""A model of three compiled pieces with attention between them. It has to be compiled by a forward pass first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from triton.runtime.cache import triton_key

from vllm import envs
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CUDAGraphMode
from vllm.forward_context import get_forward_context

LAYERS = int(os.environ.get("STAND_IN_LAYERS", "3"))
calls: dict[str, int] = {"forward": 0, "piece": 0}


class Model:
    def __init__(self, config: Any) -> None:
        self.config = config
        self.weights = [torch.nn.Parameter((4,), torch.float32, _filled(4, 100 + n).storage) for n in range(LAYERS)]
        self.pieces: list[Any] = []
        self.one_artifact: bool | None = None
        self.loaded: bool | None = None

    def compile(self) -> None:
        """Make the pieces, and what is left behind by that."""
        self.one_artifact = bool(envs.VLLM_USE_MEGA_AOT_ARTIFACT)
        kind = ("graph", "artifact")[self.one_artifact]
        folder = Path(envs.VLLM_CACHE_ROOT, "torch_compile_cache", "torch_aot_compile", triton_key() + kind)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor_cache")
        kept = folder / "rank_0_0" / "model"
        self.loaded = kept.is_file()
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(kind)
        self.left_over = torch.empty(1 << 20)
        piecewise = CUDAGraphMode.PIECEWISE in self.config.compilation_config.cudagraph_mode.modes()
        for _ in range(LAYERS):
            self.pieces.append(CUDAGraphWrapper(_piece, self.config, CUDAGraphMode.PIECEWISE) if piecewise else _piece)

    def __call__(self, input_ids: Any, positions: Any) -> Any:
        calls["forward"] += 1
        if not self.pieces:
            self.compile()
        hidden = input_ids
        for piece, weight in zip(self.pieces, self.weights, strict=True):
            query, out = piece(hidden, weight, hidden.shape[0])
            attend(query, out)
            hidden = out
        return hidden


def _piece(hidden: Any, weight: Any, tokens: int) -> Any:
    calls["piece"] += 1
    query, out = torch.empty(tokens), torch.empty(tokens)
    query.copy_(hidden)
    query[:1].copy_(weight[:1])
    return query, out


def attend(query: Any, out: Any) -> None:
    if get_forward_context().attn_metadata is None:
        out.fill_(0)
    else:
        out.copy_(query)


def _filled(count: int, value: int) -> Any:
    return torch.tensor_of([value] * count)


Forward = Callable[[Any], Any]
