"""Starts the stand-in of transformers' continuous batching, then runs steps of the sizes that stand in a file."""

from __future__ import annotations

import argparse
import json
import types
from pathlib import Path
from typing import Any


def main() -> None:
    import torch
    import transformers  # noqa: F401
    from transformers.generation.continuous_batching import cache as caches
    from transformers.generation.continuous_batching import input_outputs, model_runner

    parser = argparse.ArgumentParser()
    parser.add_argument("--steps-file", required=True, help="sizes of the steps that clients cause")
    parser.add_argument("--free", type=int, default=20)
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--no-warmup", action="store_true")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--compiled", action="store_true")
    chosen = parser.parse_args()
    config = types.SimpleNamespace(
        to_dict=lambda: {"layers": 2, "_name_or_path": "here"}, _attn_implementation="paged|sdpa"
    )
    batching = types.SimpleNamespace(
        block_size=256, num_blocks=None, max_batch_tokens=None, max_memory_percent=0.9, max_requests_per_batch=4,
        max_blocks_per_request=16, use_async_batching=chosen.asynchronous, q_padding_interval_size=8,
        kv_padding_interval_size=64, return_logprobs=False, per_request_processors=False,
        varlen_compile_config=object() if chosen.compiled else None, decode_compile_config=None,
        cuda_graph_booleans=(True, True),
    )  # fmt: skip
    torch.cuda.current_device()
    weights = torch.tensor_of([7] * 8)

    def model(ids: Any) -> Any:
        hidden = torch.empty(ids.shape[0])
        hidden.copy_(ids)
        hidden[:1].copy_(weights[:1])
        return hidden

    model.config = config  # type: ignore[attr-defined]
    cache = caches.PagedAttentionCache(config, batching, chosen.free)
    kind = input_outputs.ContinuousBatchingAsyncIOs if chosen.asynchronous else input_outputs.ContinuousBatchingIOs
    steps: Any = kind(cache.max_batch_tokens)
    processors = types.SimpleNamespace(logits_processor=[Temperature(chosen.temperature)])
    runner = model_runner.ModelRunner(processors, batching, steps, cache)
    if not chosen.no_warmup:
        runner.warmup(model)
    before, outputs = len(model_runner.calls), []
    for number, size in enumerate(map(int, Path(chosen.steps_file).read_text(encoding="ascii").split())):
        steps.prepare([10 * (number + 1) + n for n in range(size)], size, decode=size <= 4)
        runner.compute_batch(model, steps.get_model_kwargs())
        outputs.append(steps.output_ids[:size].tolist())
    told = {
        "outputs": outputs,
        "runs_before": before,
        "runs_while_serving": len(model_runner.calls) - before,
        "blocks": cache.num_blocks,
    }
    print(json.dumps(told))


class Temperature:
    def __init__(self, temperature: float) -> None:
        self.temperature = temperature


if __name__ == "__main__":
    main()
