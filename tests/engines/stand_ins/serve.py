"""Starts the stand-in of vLLM as vLLM starts, then runs a batch of each size in each mode, and tells what came out."""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import sys
import types
from collections.abc import Mapping
from typing import Any


def main() -> None:
    if "--spawn" in sys.argv:
        sys.argv.remove("--spawn")
        worker = multiprocessing.get_context("spawn").Process(target=serve, args=(sys.argv[1:],))
        worker.start()
        worker.join()
        sys.exit(worker.exitcode)
    serve(sys.argv[1:])


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--v1", action="store_true")
    parser.add_argument("--mode", default="FULL_AND_PIECEWISE")
    parser.add_argument("--sizes", default="1,2,4")
    parser.add_argument("--max-len", type=int, default=64)
    parser.add_argument("--free", type=int, default=6400)
    parser.add_argument("--layers", type=int, default=3, help="of the model, as its configuration tells")
    parser.add_argument("--quantization")
    parser.add_argument("--attention-backend", default="FLASH_ATTN")
    parser.add_argument("--odd", action="store_true", help="a configuration that the adapter does not expect")
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--not-compiled", action="store_true")
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--shift", action="store_true", help="allocate something more than the capture did")
    parser.add_argument("--keep-environment", action="store_true", help="read no variable again once it is up")
    parser.add_argument("--torch-graph", action="store_true", help="capture a graph that is not the engine's")
    return parser


class Engine:
    """The engine, started: `worker`, and what its start gave."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        import torch
        from vllm import config as configs
        from vllm import envs
        from vllm.v1.worker import gpu_worker

        self.sizes = [int(size) for size in chosen.sizes.split(",")]
        vllm_config = configs.config(
            mode=chosen.mode,
            sizes=self.sizes,
            v2=not chosen.v1,
            max_len=chosen.max_len,
            compiled=not chosen.not_compiled,
            free_bytes=chosen.free,
        )
        vllm_config.model_config.hf_config.to_dict = lambda: {"layers": chosen.layers, "_name_or_path": "here"}
        vllm_config.model_config.quantization = chosen.quantization
        vllm_config.attention_config.backend = chosen.attention_backend
        if chosen.odd:
            del vllm_config.attention_config
        if chosen.lora:
            vllm_config.lora_config = types.SimpleNamespace()
        if chosen.keep_environment:
            envs.enable_envs_cache()
        self.worker = gpu_worker.Worker(vllm_config)
        self.worker.init_device()
        self.worker.load_model()
        if chosen.random:
            use_random_numbers(self.worker.model_runner)
        self.available = self.worker.determine_available_memory()
        self.worker.initialize_from_config(gpu_worker.kv_cache_config(self.available))
        self.kept = torch.empty(1 << 20) if chosen.shift else None
        self.result = self.worker.compile_or_warm_up_model()
        self.serve = self.worker.model_runner.serve

    def answer(self, request: Mapping[str, Any]) -> list[int]:
        """Run a batch."""
        from vllm.config import CUDAGraphMode

        found: list[int] = self.serve(request["tokens"], CUDAGraphMode[request["mode"]])
        return found


def serve(arguments: list[str]) -> None:
    import torch
    from triton.runtime.cache import computed_by

    chosen = options().parse_args(arguments)
    engine = Engine(chosen)
    if chosen.torch_graph:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.empty(4).fill_(1)
    from vllm.compilation.cuda_graph import CUDAGraphWrapper, captured
    from vllm.config import CUDAGraphMode
    from vllm.model import calls
    from vllm.v1.worker.gpu.cudagraph_utils import prepared

    seen = dict(calls)
    outputs = {
        f"{mode.name} {size}": engine.serve([7 + size * 10 + index for index in range(size)], mode)
        for mode in CUDAGraphMode[chosen.mode].modes()
        for size in engine.sizes
    }
    told = {
        "available": engine.available,
        "result": engine.result,
        "outputs": outputs,
        "captured": len(captured),
        "profiled": engine.worker.model_runner.profiled,
        "calls": seen,
        "plain_wrapper": CUDAGraphWrapper.__call__.__qualname__,
        "kept": engine.kept is not None,
        "one_artifact": engine.worker.model_runner.model.one_artifact,
        "prepared": {mode: prepared.count(mode) for mode in sorted(set(prepared))},
        "sooner": {
            "loaded": engine.worker.model_runner.model.loaded,
            "frozen": gc.get_freeze_count() > 0,
            "key_computed_by": computed_by,
        },
    }
    print(json.dumps(told))


def use_random_numbers(runner: object) -> None:
    """Have each eager pass of the model move the generator on, as random numbers in it would."""
    import torch

    model = runner.model  # type: ignore[attr-defined]
    plain = type(model).__call__

    def call(self: object, *args: object, **kwargs: object) -> object:
        torch.cuda.default_generators[0].offset += 4
        return plain(self, *args, **kwargs)

    type(model).__call__ = call


if __name__ == "__main__":
    main()
