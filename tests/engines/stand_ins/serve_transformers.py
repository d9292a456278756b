"""Starts the stand-in of transformers' continuous batching, then runs steps of the sizes that stand in a file."""

from __future__ import annotations

import argparse
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps-file", help="sizes of the steps that clients cause")
    parser.add_argument("--free", type=int, default=20)
    parser.add_argument("--most-tokens", type=int, help="of a step")
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--no-warmup", action="store_true")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--layers", type=int, default=2, help="of the model, as its configuration tells")
    parser.add_argument("--attention", default="paged|sdpa")
    return parser


class Engine:
    """The engine, started."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        import torch
        import transformers  # noqa: F401
        from transformers.generation.continuous_batching import cache as caches
        from transformers.generation.continuous_batching import input_outputs, model_runner

        config = types.SimpleNamespace(
            to_dict=lambda: {"layers": chosen.layers, "_name_or_path": "here"}, _attn_implementation=chosen.attention
        )
        batching = types.SimpleNamespace(
            block_size=256, num_blocks=None, max_batch_tokens=chosen.most_tokens, max_memory_percent=0.9,
            max_requests_per_batch=4, max_blocks_per_request=16, use_async_batching=chosen.asynchronous,
            q_padding_interval_size=8, kv_padding_interval_size=64, return_logprobs=False,
            per_request_processors=False, varlen_compile_config=object() if chosen.compiled else None,
            decode_compile_config=None, cuda_graph_booleans=(True, True),
        )  # fmt: skip
        torch.cuda.current_device()
        weights = torch.tensor_of([7] * 8)

        def model(ids: Any) -> Any:
            hidden = torch.empty(ids.shape[0])
            hidden.copy_(ids)
            hidden[:1].copy_(weights[:1])
            return hidden

        model.config = config  # type: ignore[attr-defined]
        self.model = model
        self.cache = caches.PagedAttentionCache(config, batching, chosen.free)
        kind = input_outputs.ContinuousBatchingAsyncIOs if chosen.asynchronous else input_outputs.ContinuousBatchingIOs
        self.steps: Any = kind(self.cache.max_batch_tokens)
        processors = types.SimpleNamespace(logits_processor=[Temperature(chosen.temperature)])
        self.runner = model_runner.ModelRunner(processors, batching, self.steps, self.cache)
        if not chosen.no_warmup:
            self.runner.warmup(model)

    def answer(self, request: Mapping[str, Any]) -> list[int]:
        """Run a step: of decode, if it is a small one."""
        tokens = request["tokens"]
        self.steps.prepare(tokens, len(tokens), decode=len(tokens) <= 4)
        self.runner.compute_batch(self.model, self.steps.get_model_kwargs())
        found: list[int] = self.steps.output_ids[: len(tokens)].tolist()
        return found


def main() -> None:
    chosen = options().parse_args()
    engine = Engine(chosen)
    from transformers.generation.continuous_batching import model_runner

    before, outputs = len(model_runner.calls), []
    for number, size in enumerate(map(int, Path(chosen.steps_file).read_text(encoding="ascii").split())):
        outputs.append(engine.answer({"tokens": [10 * (number + 1) + n for n in range(size)]}))
    told = {
        "outputs": outputs,
        "runs_before": before,
        "runs_while_serving": len(model_runner.calls) - before,
        "blocks": engine.cache.num_blocks,
    }
    print(json.dumps(told))


class Temperature:
    def __init__(self, temperature: float) -> None:
        self.temperature = temperature


if __name__ == "__main__":
    main()
