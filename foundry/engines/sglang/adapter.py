"""Which functions of SGLang are replaced, by which, and in which release they are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from foundry.engines.replacing import late, replace
from foundry.engines.sglang.release import BREAKABLE, CAPTURE, FIELDS, FULL, POOLS, RUNNER, SEAMS, VERSIONS

_START = "foundry.engines.sglang.start"
_FULL = "foundry.engines.sglang.full"
_SEGMENTS = "foundry.engines.sglang.segments"


class SglangAdapter:
    """SGLang's CUDA graphs: full ones of decode, and the rows of graphs of prefill."""

    name = "sglang"
    versions = VERSIONS
    seams = SEAMS
    fields = FIELDS

    @property
    def patches(self) -> Mapping[str, Callable[[ModuleType], None]]:
        """What to do with each module."""
        return {POOLS: _pools, RUNNER: _runner, FULL: _full, BREAKABLE: _breakable, CAPTURE: _capture}


def _pools(module: ModuleType) -> None:
    replace(module.KVCacheConfigurator, "_resolve_memory_pool_config", late(_START, "pool_config"))


def _runner(module: ModuleType) -> None:
    replace(module.ModelRunner, "load_model", late(_START, "load_model"))
    replace(module.ModelRunner, "init_cuda_graphs", late(_START, "cuda_graphs"))


def _full(module: ModuleType) -> None:
    replace(module.FullCudaGraphBackend, "capture_one", late(_FULL, "capture_one"))


def _breakable(module: ModuleType) -> None:
    replace(module.BreakableCudaGraphBackend, "capture_one", late(_SEGMENTS, "capture_one"))


def _capture(module: ModuleType) -> None:
    context = module.BreakableCUDAGraphCapture
    for name, stand_in in (
        ("__enter__", "enter"),
        ("__exit__", "leave"),
        ("_begin_new_segment", "begin_segment"),
        ("_end_current_segment", "end_segment"),
    ):
        replace(context, name, late(_SEGMENTS, stand_in))
