"""Which functions of transformers are replaced, by which, and in which release they are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from foundry.engines.replacing import late, replace
from foundry.engines.transformers.release import CACHE, FIELDS, RUNNER, SEAMS, VERSIONS

_STEPS = "foundry.engines.transformers.steps"


class TransformersAdapter:
    """CUDA graphs of `generate_batch` with `use_cuda_graph`: each a step, with sampling in it."""

    name = "transformers"
    versions = VERSIONS
    seams = SEAMS
    fields = FIELDS

    @property
    def patches(self) -> Mapping[str, Callable[[ModuleType], None]]:
        """What to do with each module."""
        return {CACHE: _cache, RUNNER: _runner}


def _cache(module: ModuleType) -> None:
    replace(module.PagedAttentionMemoryHandler, "infer_max_batch_tokens_and_num_blocks", late(_STEPS, "cache_size"))


def _runner(module: ModuleType) -> None:
    replace(module.ModelRunner, "_capture_graph", late(_STEPS, "capture_graph"))
    replace(module.ModelRunner, "warmup", late(_STEPS, "warmup"))
