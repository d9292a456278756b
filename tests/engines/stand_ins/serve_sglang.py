"""Starts the stand-in of SGLang as its scheduler starts, then runs a batch of each size, and tells what came out."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys


def main() -> None:
    if "--spawn" in sys.argv:
        sys.argv.remove("--spawn")
        scheduler = multiprocessing.get_context("spawn").Process(target=serve, args=(sys.argv[1:],))
        scheduler.start()
        scheduler.join()
        sys.exit(scheduler.exitcode)
    serve(sys.argv[1:])


def serve(arguments: list[str]) -> None:
    import sglang  # noqa: F401
    import torch
    from sglang.srt import server_args as arguments_of
    from sglang.srt.layers import radix_attention
    from sglang.srt.model import calls
    from sglang.srt.model_executor.model_runner import ModelRunner
    from triton.runtime.cache import computed_by

    parser = argparse.ArgumentParser()
    parser.add_argument("--decode", default="1,2,4")
    parser.add_argument("--prefill", default="4,8")
    parser.add_argument("--free", type=int, default=100)
    parser.add_argument("--attention", default="triton")
    parser.add_argument("--features", type=json.loads, default={}, help="server arguments, as JSON")
    parser.add_argument("--shift", action="store_true", help="allocate something more than the capture did")
    chosen = parser.parse_args(arguments)
    decode, prefill = ([int(size) for size in text.split(",")] for text in (chosen.decode, chosen.prefill))
    features = dict(chosen.features)
    backends = features.pop("backends", {})
    given = arguments_of.server_args(decode=decode, prefill=prefill, **features)
    for phase, backend in backends.items():
        getattr(given.cuda_graph_config, phase).backend = backend
    runner = ModelRunner(given, chosen.free, chosen.attention)
    runner.alloc_memory_pool()
    kept = torch.empty(1 << 20) if chosen.shift else None
    runner.init_cuda_graphs()
    seen, ran = dict(calls), len(radix_attention.ran)
    outputs = {f"decode {size}": runner.decode([7 + 10 * size + n for n in range(size)]) for size in decode}
    outputs |= {f"prefill {size}": runner.prefill([3 + 10 * size + n for n in range(size - 1)]) for size in prefill}
    told = {
        "outputs": outputs,
        "calls": seen,
        "attention_before_ready": ran,
        "attention_while_serving": len(radix_attention.ran) - ran,
        "tokens": runner.max_total_num_tokens,
        "kept": kept is not None,
        "sooner": {"key_computed_by": computed_by},
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
