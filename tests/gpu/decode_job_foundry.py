"""The reference decode job, adapted by calls to `foundry.torch` only. Run it plainly, under capture, or under restore.

    python decode_job_foundry.py --out result.json [--eager] [--steady] [--versus] [--start-only] [--sizes 1,8,64]

The result holds, for each batch size, digests of what a replay does to fresh ids, positions and cache contents, replay
times, phases, and the hook's totals. The file is rewritten after each step, so that a run cut short leaves what it has.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import itertools
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

START = time.perf_counter()
DEFAULT_JOB = Path(__file__).resolve().parents[1] / "engines" / "workloads" / "decode_job.py"
TOTALS = ("warm_ups_run", "warm_ups_skipped", "captures_run", "captures_skipped", "graphs_blocked_ns")
FRESH_SEEDS = (101, 202)
VERSUS_REPLAYS = 200
"""Enough for a 99th percentile."""


class Result:
    """What is known so far, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {"finished": False, "phases": {}}
        self.last = START

    def phase(self, name: str) -> None:
        """End a phase and say how long it took."""
        now = time.perf_counter()
        self.values["phases"][name] = now - self.last
        print(f"  {name}: {now - self.last:.3f} s", file=sys.stderr, flush=True)
        self.last = now
        self.save()

    def save(self) -> None:
        """Write the file anew."""
        unfinished = self.path.with_suffix(".part")
        unfinished.write_text(json.dumps(self.values, indent=1))
        unfinished.replace(self.path)


def load(path: Path) -> ModuleType:
    """Import the workload from its file."""
    specification = importlib.util.spec_from_file_location("decode_job", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def make_inputs(job: ModuleType, layers: int, seed: int = 1) -> tuple[Any, Any, Any]:
    """Do what the job's `inputs` does, for any number of layers."""
    import torch

    if layers == 28:
        return job.inputs(seed)
    model = job.Model(layers=layers).eval()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.02)
    return model, torch.arange(256) * 7, torch.zeros(1, dtype=torch.long)


def freshen(model: Any, ids: Any, position: Any, seed: int) -> None:
    """Fill ids, position and the whole cache with numbers of that seed."""
    import torch

    generator = torch.Generator("cuda").manual_seed(seed)
    ids.random_(0, model.embed.num_embeddings, generator=generator)
    position.fill_(seed % (model.positions - 1))
    for cache in (*model.keys, *model.values):
        cache.normal_(0, 0.5, generator=generator)


def digest(model: Any, outputs: Any, position: Any, streams: int) -> dict[str, Any]:
    """Return the tokens, and a digest of the rows that the step wrote and of a sum over the whole cache."""
    import torch

    where = int(position.item())
    written, sums = hashlib.sha256(), []
    for cache in (*model.keys, *model.values):
        rows = cache[:streams, :, where, :].contiguous().view(torch.int16)
        written.update(rows.cpu().numpy().tobytes())
        sums.append(int(cache.view(torch.int16).sum(dtype=torch.int64).item()))
    written.update(repr(sums).encode())
    return {"tokens": outputs.tolist(), "cache": written.hexdigest()}


def digests(model: Any, ids: Any, position: Any, sizes: list[int], run: Any) -> dict[str, list[dict[str, Any]]]:
    """Digest a step of each size for each fresh seed. `run(size)` gives the tokens."""
    found: dict[str, list[dict[str, Any]]] = {}
    for streams in sizes:
        found[str(streams)] = []
        for seed in FRESH_SEEDS:
            freshen(model, ids, position, seed + streams)
            found[str(streams)].append(digest(model, run(streams), position, streams))
    return found


def replay_times(graphs: list[Any], replays: int) -> list[list[float]]:
    """Return the milliseconds of replays for each graph; their replays take turns, so that drift meets all."""
    import torch

    times: list[list[float]] = [[] for _ in graphs]
    for graph in graphs:
        graph.replay()
    rounds = 1 if len(graphs) == 1 else 5
    for _ in range(rounds):
        for graph, found in zip(graphs, times, strict=True):
            events = [torch.cuda.Event(enable_timing=True) for _ in range(replays // rounds + 2)]
            graph.replay()
            for event in events:
                event.record()
                graph.replay()
            torch.cuda.synchronize()
            found.extend(one.elapsed_time(two) for one, two in itertools.pairwise(events))
    return times


def percentile(values: list[float], share: float) -> float:
    """Return the value that this share of all do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def versus(model: Any, ids: Any, position: Any, held: dict[int, Any], replays: int) -> dict[str, dict[str, float]]:
    """Capture each size by torch alone in this same process, and time both graphs in turns."""
    import torch

    # The captured graphs are kept: torch's pool ends with the last graph that uses it.
    pool, compared, kept = None, {}, []
    for streams, graph in held.items():
        model(ids[:streams], position)
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured, pool=pool):
            model(ids[:streams], position)
        pool = pool or captured.pool()
        kept.append(captured)
        given, other = replay_times([graph, captured], replays)
        one, two = statistics.median(given), statistics.median(other)
        late, late_captured = percentile(given, 0.99), percentile(other, 0.99)
        compared[str(streams)] = {
            "given_ms": one, "captured_ms": two, "ratio": one / two,
            "given_p99_ms": late, "captured_p99_ms": late_captured, "p99_ratio": late / late_captured,
            "replays": len(given),
        }  # fmt: skip
    return compared


def main() -> int:
    """Run the job."""
    parser = argparse.ArgumentParser(description="the reference decode job through foundry.torch")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--job", type=Path, default=Path(os.environ.get("DECODE_JOB", DEFAULT_JOB)))
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--sizes", help="comma-separated; all 35 if left out")
    parser.add_argument("--replays", type=int, default=25)
    parser.add_argument("--eager", action="store_true", help="digest eager steps too, twice")
    parser.add_argument(
        "--steady",
        action="store_true",
        help="without cuDNN's attention, whose results differ from call to call on the same inputs",
    )
    parser.add_argument("--versus", action="store_true", help="capture each size by torch alone too, and compare times")
    parser.add_argument("--start-only", action="store_true", help="end when the graphs are ready")
    arguments = parser.parse_args()
    result = Result(arguments.out)

    import torch

    from foundry import capi
    from foundry.torch import GraphSet, commit

    result.phase("import")
    torch.cuda.init()
    torch.cuda.synchronize()
    result.phase("context")
    if arguments.steady:
        torch.backends.cuda.enable_cudnn_sdp(False)
    job = load(arguments.job)
    sizes = [int(size) for size in arguments.sizes.split(",")] if arguments.sizes else list(job.BATCH_SIZES)
    hook = capi.load()
    result.values |= {
        "mode": hook.mode().name, "torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "sizes": sizes,
        "layers": arguments.layers, "replays": arguments.replays, "steady": arguments.steady,
    }  # fmt: skip
    with torch.device("cuda"), torch.no_grad():
        model, ids, position = make_inputs(job, arguments.layers)
        torch.cuda.synchronize()
        result.phase("model")
        watched = [*model.parameters(), *model.keys, *model.values, model.cos, model.sin]
        graphs, held = GraphSet("decode", watched=watched), {}
        for streams in sorted(sizes, reverse=True):
            held[streams] = graphs.capture_or_restore(streams, model, (ids[:streams], position))
        torch.cuda.synchronize()
        result.phase("graphs")
        commit()
        result.values["ready_seconds"] = time.perf_counter() - START
        result.values["restored"] = sum(graph.restored for graph in held.values())
        result.values["reasons"] = graphs.reasons
        result.values["totals"] = {name: hook.counter(name) for name in TOTALS}
        result.phase("commit")
        if arguments.start_only:
            result.values["finished"] = True
            result.save()
            return 0

        first = {}
        for streams, graph in held.items():
            begin = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            first[str(streams)] = (time.perf_counter() - begin) * 1e3
        result.values["first_replay_ms"] = first
        result.phase("first replays")

        def replayed(streams: int) -> Any:
            held[streams].replay()
            return held[streams].outputs

        result.values["digests"] = digests(model, ids, position, sizes, replayed)
        result.phase("digests")
        if arguments.eager:
            for name in ("eager_digests", "eager_digests_again"):
                result.values[name] = digests(
                    model, ids, position, sizes, lambda streams: model(ids[:streams], position)
                )
            result.phase("eager digests")
        result.values["replay_ms"] = {
            str(streams): statistics.median(*replay_times([graph], arguments.replays))
            for streams, graph in held.items()
        }
        result.phase("replay times")
        if arguments.versus:
            result.values["versus"] = versus(model, ids, position, held, max(arguments.replays, VERSUS_REPLAYS))
            result.phase("versus")
    result.values["totals_at_end"] = {name: hook.counter(name) for name in TOTALS}
    result.values["finished"] = True
    result.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
