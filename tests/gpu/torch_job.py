"""Small torch programs on `foundry.torch`, one a case, whose results a plain start, a capture and a restore agree on.

    python torch_job.py CASE --out result.json

The result is {"values": ..., "restored": n, "graphs": n, "reasons": {...}, "totals": {...}}.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from foundry import capi
from foundry.torch import Graph, GraphSet, commit

TOTALS = ("warm_ups_run", "warm_ups_skipped", "captures_run", "captures_skipped")


def numbers(tensor: torch.Tensor) -> list[float]:
    """Return a tensor's values, exactly."""
    return tensor.detach().float().cpu().flatten().tolist()


def random_numbers() -> tuple[Any, list[Graph], GraphSet]:
    """Dropout and drawing inside graphs follow torch's generator; so does what comes after."""
    torch.manual_seed(11)
    x = torch.ones(4, 64)

    def step(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.nn.functional.dropout(x, 0.5), torch.randn(3, 5) + x[:3, :5]

    graphs = GraphSet("random")
    first = graphs.capture_or_restore("both", step, (x,))
    second = graphs.capture_or_restore("uniform", lambda x: torch.rand(7) + x[0, :7], (x,))
    plain = graphs.capture_or_restore("none", lambda x: x * 2, (x,))
    generator = torch.cuda.default_generators[0]
    values: list[Any] = [generator.get_offset()]
    for seed in (None, 1, 1, 2, 2**63 + 5):
        if seed is not None:
            torch.manual_seed(seed)
        drawn: list[Any] = []
        for graph in (first, second, plain, first):
            graph.replay()
            outputs = graph.outputs if isinstance(graph.outputs, tuple) else (graph.outputs,)
            drawn.append([numbers(output) for output in outputs])
        values.append([*drawn, numbers(torch.randn(4)), generator.get_offset()])
    assert values[2] == values[3], "one seed gave two sequences"
    assert values[3] != values[4], "two seeds gave one sequence"
    assert values[2][0] != values[2][3], "two replays in a row drew the same numbers"
    return values, [first, second, plain], graphs


def nested_outputs() -> tuple[Any, list[Graph], GraphSet]:
    """Outputs keep their nesting, their constants, and which of them share memory."""
    x = torch.arange(24.0).view(4, 6)
    table = torch.zeros(4, 6)

    def step(x: torch.Tensor, scale: float) -> dict[str, Any]:
        y = x * scale
        table.copy_(y)
        return {
            "whole": y, "part": (y[1:3, 2:], y.t()), "none": None, "list": [1, 2.5, "text", True, [x.sum(0)]],
            "input": x, 3: x[2:], "table": table, "empty": torch.empty(0, 3),
            "half": y.to(torch.bfloat16), "bit": y > 3,
        }  # fmt: skip

    graphs = GraphSet("nested", watched=(table,))
    graph = graphs.capture_or_restore("step", step, (x, 1.5))
    values = []
    for start in (0.0, 5.0):
        x.copy_(torch.arange(24.0).view(4, 6) + start)
        graph.replay()
        out = graph.outputs
        out["part"][0].add_(1)
        values.append(
            [list(map(str, out)), numbers(out["whole"]), [numbers(part) for part in out["part"]], out["none"],
             out["list"][:4], numbers(out["list"][4][0]), numbers(out[3]), numbers(out["table"]), numbers(out["half"]),
             list(out["empty"].shape), numbers(out["bit"]), [str(out[name].dtype) for name in ("half", "bit", "whole")],
             list(out["part"][1].stride()), out["input"].data_ptr() == x.data_ptr(),
             out["part"][1].untyped_storage().data_ptr() == out["whole"].untyped_storage().data_ptr()]
        )  # fmt: skip
    return values, [graph], graphs


def matrix_products() -> tuple[Any, list[Graph], GraphSet]:
    """Products that take a cuBLAS workspace, with eager products before and after on the program's own streams."""
    torch.manual_seed(5)
    weights = [torch.randn(512, 512, dtype=torch.bfloat16) * 0.05 for _ in range(4)]
    x = torch.randn(256, 512, dtype=torch.bfloat16)
    torch.mm(x, weights[0])

    def step(x: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = torch.nn.functional.relu(x @ weight)
        return x.float().sum(1)

    graphs = GraphSet("products", watched=weights)
    held = [graphs.capture_or_restore(rows, step, (x[:rows],), warm_ups=2) for rows in (256, 64, 3, 1)]
    values = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        x.copy_(torch.randn(256, 512))
        for graph in held:
            graph.replay()
            torch.mm(x, weights[1])
            assert torch.equal(graph.outputs, step(x[: graph.outputs.shape[0]])), f"{graph} differs from eager"
            values.append(numbers(graph.outputs))
    return values, held, graphs


def moved_input() -> tuple[Any, list[Graph], GraphSet]:
    """A program whose memory lies elsewhere on a restore gets its own capture, and right results."""
    moved = torch.ones(1000, 1000) if os.environ.get("FOUNDRY_MODE") == "restore" else None
    x = torch.arange(1000.0)
    graphs = GraphSet("moved")
    graph = graphs.capture_or_restore("double", lambda x: x * 2, (x,))
    values = []
    for start in (1.0, 2.0):
        x.copy_(torch.arange(1000.0) + start)
        graph.replay()
        values.append(numbers(graph.outputs))
    del moved
    return values, [graph], graphs


def refused_graphs() -> tuple[Any, list[Graph], GraphSet]:
    """What an archive can't give back works as a capture does."""
    x = torch.arange(6.0)
    graphs = GraphSet("refused")
    held = [
        graphs.capture_or_restore("set", lambda x: {1, (x * 2).shape[0]}, (x,)),
        graphs.capture_or_restore("shape", lambda x: (x * 2).shape, (x,)),
        graphs.capture_or_restore("fine", lambda x: x * 3, (x,)),
    ]
    x.add_(1)
    for graph in held:
        graph.replay()
    return [sorted(held[0].outputs), list(held[1].outputs), numbers(held[2].outputs)], held, graphs


def witnessed_graphs() -> tuple[Any, list[Graph], GraphSet]:
    """Graphs with a cache, an index, products and random numbers; parity holds, and finds a value that is left out."""
    torch.manual_seed(3)
    weight = torch.randn(256, 256, dtype=torch.bfloat16) * 0.05
    cache = torch.zeros(64, 256, dtype=torch.bfloat16)
    x, position = torch.randn(32, 256, dtype=torch.bfloat16), torch.zeros(1, dtype=torch.int64)
    host = {"scale": 3.25}

    def step(x: torch.Tensor, position: torch.Tensor) -> dict[str, torch.Tensor]:
        y = torch.relu(x @ weight)
        cache.index_copy_(0, position, y[:1])
        scores = torch.softmax((y @ cache.t()).float(), -1)
        return {"scores": scores, "scaled": y.float() * host["scale"]}

    def draw(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x.float(), 0.5)

    graphs = GraphSet("witnessed", watched=(weight, cache))
    held = [graphs.capture_or_restore(rows, step, (x[:rows], position)) for rows in (32, 8, 1)]
    held.append(graphs.capture_or_restore("draw", draw, (x,)))
    before = [numbers(tensor) for tensor in (weight, cache, x, position)]
    generator = torch.cuda.default_generators[0]
    stands = generator.initial_seed(), generator.get_offset()
    for graph in held:
        found = graphs.parity(graph.key, draw if graph.key == "draw" else step)
        assert found.equal, f"{graph}: {found}"
    positions = [(x[:8].flip(1).clone(), torch.full((1,), at)) for at in (5, 63)]
    found = graphs.parity(8, step, positions)
    assert found.equal and "input[1]" in found.varied, found
    host["scale"] = 3.5
    found = graphs.parity(8, step)
    assert not found.equal and "scaled" in str(found.difference), found
    host["scale"] = 3.25
    assert not graphs.parity(8, lambda x, position: {**step(x, position), "scores": x.float()}).equal
    assert [numbers(tensor) for tensor in (weight, cache, x, position)] == before, "parity left a trace"
    assert (generator.initial_seed(), generator.get_offset()) == stands, "parity moved the generator"
    cache.zero_()
    values = []
    for at in (0, 7):
        position.fill_(at)
        for graph in held:
            graph.replay()
            outputs = graph.outputs.values() if isinstance(graph.outputs, dict) else [graph.outputs]
            values.append([numbers(output) for output in outputs])
    return [*values, numbers(cache), generator.get_offset()], held, graphs


CASES = {
    "random": random_numbers,
    "nested": nested_outputs,
    "products": matrix_products,
    "moved": moved_input,
    "refused": refused_graphs,
    "witnessed": witnessed_graphs,
}


def main() -> int:
    """Run a case."""
    parser = argparse.ArgumentParser(description="small torch programs on foundry.torch")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with torch.device("cuda"), torch.no_grad():
        values, held, graphs = CASES[arguments.case]()
        torch.cuda.synchronize()
        commit()
    hook = capi.load()
    result = {
        "values": values,
        "mode": hook.mode().name,
        "graphs": len(held),
        "restored": sum(graph.restored for graph in held),
        "reasons": graphs.reasons,
        "totals": {name: hook.counter(name) for name in TOTALS},
    }
    arguments.out.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
