"""How vLLM keeps a compiled model on disk.

By default this release with this torch keeps the traced graph, and splits it and looks up each piece at each start. A
switch of its own (which is its default with later releases of torch) has it keep what the pieces became, each kind
once: a start then loads them and no more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from foundry.engines.protocol import tell

SWITCH = "VLLM_USE_MEGA_AOT_ARTIFACT"
_LEAST_TORCH = (2, 10)


def keep_as_one_artifact(config: Any) -> None:
    """Turn vLLM's switch on for a capture, and say so."""
    if _turn_on(config):
        tell(
            "vllm", f"its compiled model is kept as one artifact, which a restore loads sooner ({SWITCH}=0: it is not)"
        )


def keep_as_captured(config: Any, name: str | None) -> None:
    """Turn vLLM's switch on if the capture's `artifact` is there. Else a start as always may still find its own."""
    from vllm import envs

    if name is not None and Path(envs.VLLM_CACHE_ROOT, name).is_file():
        _turn_on(config)


def _turn_on(config: Any) -> bool:
    """Whether it was, for this process: its user may have set it, or it would do nothing, or not be seen."""
    found = SWITCH not in os.environ and _supported(config)
    if found:
        os.environ[SWITCH] = "1"
    return found


def artifact(config: Any) -> str | None:
    """Name the file of the compiled model below vLLM's folder of caches; None if there is none as one artifact."""
    from vllm import envs

    if not getattr(envs, SWITCH):
        return None
    parallel, root = config.parallel_config, Path(envs.VLLM_CACHE_ROOT)
    folder = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")).parent
    path = folder / f"rank_{parallel.rank}_{parallel.data_parallel_index}" / "model"
    return str(path.relative_to(root)) if path.is_relative_to(root) and path.is_file() else None


def _supported(config: Any) -> bool:
    from vllm import envs

    compilation = config.compilation_config
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return (
        compilation.mode is not None
        and compilation.mode.name == "VLLM_COMPILE"
        and compilation.backend == "inductor"
        and version >= _LEAST_TORCH
        and envs.VLLM_USE_AOT_COMPILE
        and envs.VLLM_USE_STANDALONE_COMPILE
        and not envs.VLLM_DISABLE_COMPILE_CACHE
        # What is kept of the environment would not see the switch.
        and not hasattr(envs.__getattr__, "cache_clear")
    )
