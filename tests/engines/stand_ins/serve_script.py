"""A script that captures graphs as torch's documentation says, or with the two lines of foundry.torch in place of that.

It must have memory for what it captures before that, as every script has.
"""

from __future__ import annotations

import argparse
import json

import torch

SIZES = (4, 2, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--graph-set", action="store_true")
    chosen = parser.parse_args()
    torch.cuda.current_device()
    given = torch.empty(max(SIZES))
    weights = torch.tensor_of([7] * 8)
    runs = 0

    def model(ids: torch.Tensor) -> torch.Tensor:
        nonlocal runs
        runs += 1
        hidden = torch.empty(ids.shape[0])
        hidden.copy_(ids)
        hidden[:1].copy_(weights[:1])
        return hidden

    graphs, outputs = {}, {}
    if chosen.graph_set:
        from foundry.torch import GraphSet, commit

        decode = GraphSet("decode", watched=[weights])
        for size in SIZES:
            graphs[size] = decode.capture_or_restore(size, model, (given[:size],))
            outputs[size] = graphs[size].outputs
        commit()
    else:
        pool = torch.cuda.graph_pool_handle()
        for size in SIZES:
            model(given[:size])
            torch.cuda.synchronize()
            graphs[size] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graphs[size], pool):
                outputs[size] = model(given[:size])
    seen, found = runs, {}
    for size in SIZES:
        given[:size].copy_(torch.tensor_of(range(size)))
        graphs[size].replay()
        torch.cuda.synchronize()
        found[size] = outputs[size].tolist()
    print(json.dumps({"outputs": found, "runs": seen}))


if __name__ == "__main__":
    main()
