"""Which functions of vLLM are replaced, by which, and in which release they are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from foundry.engines.vllm.release import FIELDS, MANAGER, RUNNER_V1, RUNNER_V2, SEAMS, VERSIONS, WORKER, WRAPPER


class VllmAdapter:
    """vLLM's CUDA graphs: full ones and those of compiled pieces, in the V2 and the V1 runner."""

    name = "vllm"
    versions = VERSIONS
    seams = SEAMS
    fields = FIELDS

    @property
    def patches(self) -> Mapping[str, Callable[[ModuleType], None]]:
        """What to do with each module."""
        return {
            WORKER: _worker,
            RUNNER_V2: _runner_v2,
            MANAGER: _manager,
            RUNNER_V1: _runner_v1,
            WRAPPER: lambda module: None,
        }


def _replace(owner: Any, name: str, stand_in: Callable[..., Any]) -> None:
    """Have a method call `stand_in(plain, self, ...)`."""
    plain = getattr(owner, name)
    if hasattr(plain, "_foundry_plain"):
        return

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return stand_in(plain, self, *args, **kwargs)

    method._foundry_plain = plain  # type: ignore[attr-defined]
    setattr(owner, name, method)


def _worker(module: ModuleType) -> None:
    def available(plain: Callable[[Any], int], worker: Any) -> int:
        from foundry.engines.vllm import start

        return start.available_memory(plain, worker)

    def warm_up(plain: Callable[[Any], Any], worker: Any) -> Any:
        from foundry.engines.vllm import start

        result = plain(worker)
        start.ready(worker)
        return result

    _replace(module.Worker, "determine_available_memory", available)
    _replace(module.Worker, "compile_or_warm_up_model", warm_up)


def _profiled(name: str) -> Callable[..., Any]:
    def profiled(plain: Callable[[Any], Any], runner: Any) -> Any:
        from foundry.engines.vllm import start

        return start.profiled(plain, runner, name)

    return profiled


def _runner_v2(module: ModuleType) -> None:
    def capture_model(plain: Callable[[Any], int], runner: Any) -> int:
        from foundry.engines.vllm import runner_v2

        return runner_v2.capture_model(plain, runner)

    _replace(module.GPUModelRunner, "profile_run", _profiled("profile run"))
    _replace(module.GPUModelRunner, "capture_model", capture_model)


def _manager(module: ModuleType) -> None:
    def capture(plain: Callable[..., Any], manager: Any, *args: Any, **kwargs: Any) -> Any:
        from foundry.engines.vllm import runner_v2

        return runner_v2.capture(plain, manager, *args, **kwargs)

    _replace(module.CudaGraphManager, "capture", capture)


def _runner_v1(module: ModuleType) -> None:
    def capture_model(plain: Callable[[Any], int], runner: Any) -> int:
        from foundry.engines.vllm import runner_v1

        return runner_v1.capture_model(plain, runner)

    def warm_up_and_capture(plain: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any) -> Any:
        from foundry.engines.vllm import runner_v1

        return runner_v1.warm_up_and_capture(plain, runner, *args, **kwargs)

    for name in ("profile_run", "profile_cudagraph_memory"):
        _replace(module.GPUModelRunner, name, _profiled(name.replace("_", " ")))
    _replace(module.GPUModelRunner, "capture_model", capture_model)
    _replace(module.GPUModelRunner, "_warmup_and_capture", warm_up_and_capture)
