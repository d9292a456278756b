"""Which functions of vLLM are replaced, by which, and in which release they are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from foundry.engines.replacing import replace
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


def _worker(module: ModuleType) -> None:
    def init_device(plain: Callable[[Any], None], worker: Any) -> None:
        from foundry.engines.vllm import start

        start.init_device(plain, worker)

    def available(plain: Callable[[Any], int], worker: Any) -> int:
        from foundry.engines.vllm import start

        return start.available_memory(plain, worker)

    def warm_up(plain: Callable[[Any], Any], worker: Any) -> Any:
        from foundry.engines.vllm import start

        result = plain(worker)
        start.ready(worker)
        return result

    replace(module.Worker, "init_device", init_device)
    replace(module.Worker, "determine_available_memory", available)
    replace(module.Worker, "compile_or_warm_up_model", warm_up)


def _profiled(name: str) -> Callable[..., Any]:
    def profiled(plain: Callable[[Any], Any], runner: Any) -> Any:
        from foundry.engines.vllm import start

        return start.profiled(plain, runner, name)

    return profiled


def _runner_v2(module: ModuleType) -> None:
    def capture_model(plain: Callable[[Any], int], runner: Any) -> int:
        from foundry.engines.vllm import runner_v2

        return runner_v2.capture_model(plain, runner)

    replace(module.GPUModelRunner, "profile_run", _profiled("profile run"))
    replace(module.GPUModelRunner, "capture_model", capture_model)


def _manager(module: ModuleType) -> None:
    def capture(plain: Callable[..., Any], manager: Any, *args: Any, **kwargs: Any) -> Any:
        from foundry.engines.vllm import runner_v2

        return runner_v2.capture(plain, manager, *args, **kwargs)

    replace(module.CudaGraphManager, "capture", capture)


def _runner_v1(module: ModuleType) -> None:
    def capture_model(plain: Callable[[Any], int], runner: Any) -> int:
        from foundry.engines.vllm import runner_v1

        return runner_v1.capture_model(plain, runner)

    def warm_up_and_capture(plain: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any) -> Any:
        from foundry.engines.vllm import runner_v1

        return runner_v1.warm_up_and_capture(plain, runner, *args, **kwargs)

    for name in ("profile_run", "profile_cudagraph_memory"):
        replace(module.GPUModelRunner, name, _profiled(name.replace("_", " ")))
    replace(module.GPUModelRunner, "capture_model", capture_model)
    replace(module.GPUModelRunner, "_warmup_and_capture", warm_up_and_capture)
