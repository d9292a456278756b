"""One start of the reference decode job until its first token, by plain torch, `foundry.torch` or the public peer.

    python start_job.py WAY OUT.json [FOLDER] [--first SIZE]        WAY: torch, foundry, peer-save or peer-load

Run by `whole_start.py`, each time in a process of its own. FOLDER is the peer's archive. Times are seconds since BEGAN,
the clock's reading before the command was started.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

JOB = Path(__file__).resolve().parents[1] / "tests" / "engines" / "workloads" / "decode_job.py"
PEER_BASE, PEER_BYTES = 0x600000000000, 64 << 30
REPLAYED, REPLAYS = (1, 64, 256), 25

Replays = dict[int, Callable[[], None]]


def job() -> ModuleType:
    """Import the job."""
    spec = importlib.util.spec_from_file_location("decode_job", JOB)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_torch(model: Any, ids: Any, position: Any, sizes: list[int]) -> Replays:
    """Warm up and capture as torch's documentation says."""
    import torch

    found: Replays = {}
    pool = None
    for streams in sizes:
        model(ids[:streams], position)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            model(ids[:streams], position)
        pool = pool or graph.pool()
        found[streams] = graph.replay
    return found


def by_foundry(model: Any, ids: Any, position: Any, sizes: list[int], told: dict[str, Any]) -> Replays:
    """Ask `foundry.torch` for each graph. Of the first, tell how long its first launch took, with what that waits for.

    Where that is not the first that was captured, the background will not have come to it.
    """
    import torch

    from foundry.torch import GraphSet, commit

    watched = [*model.parameters(), *model.keys, *model.values, model.cos, model.sin]
    graphs = GraphSet("decode", watched=watched)
    if told["first"]:
        begin = time.perf_counter()
        graph = graphs.capture_or_restore(told["first"], model, (ids[: told["first"]], position))
        graph.replay()
        torch.cuda.synchronize()
        told["first_launch_ms"] = (time.perf_counter() - begin) * 1e3
        sizes = [streams for streams in sizes if streams != told["first"]]
        first = {told["first"]: graph}
    else:
        first = {}
    found = {streams: graphs.capture_or_restore(streams, model, (ids[:streams], position)) for streams in sizes} | first
    commit()
    return {streams: graph.replay for streams, graph in found.items()}


def by_peer_saved(folder: Path, model: Any, ids: Any, position: Any, sizes: list[int]) -> Replays:
    """Capture and save through the peer's public interface."""
    import torch

    import foundry as peer

    peer.preallocate_cublas_workspaces()
    found, kept, pool = {}, [], None
    for streams in sizes:
        for _ in range(2):
            model(ids[:streams], position)
        torch.cuda.synchronize()
        graph = peer.CUDAGraph()
        with peer.graph(graph, pool=pool):
            output = model(ids[:streams], position)
        pool = pool or graph.pool()
        kept.append((graph, output))
        found[streams] = graph.replay
    for index, (streams, (graph, output)) in enumerate(zip(sizes, kept, strict=True)):
        graph.save(f"{folder}/graph_{index}_bs{streams}.json", output)
    peer.stop_allocation_region()
    peer.save_graph_manifest(str(folder))
    peer.pack_fatbins_to_folder(str(folder))
    return found


def by_peer_loaded(folder: Path, sizes: list[int]) -> Replays:
    """Have the graphs from the peer's folder."""
    import foundry as peer

    peer.preallocate_cublas_workspaces()
    paths = [f"{folder}/graph_{index}_bs{streams}.json" for index, streams in enumerate(sizes)]
    found = peer.CUDAGraph.finish_graph_loads(peer.CUDAGraph.start_graph_builds(paths, None, 4))
    return {streams: graph.replay for streams, (graph, _) in zip(sizes, found, strict=True)}


def replay_milliseconds(replay: Callable[[], None]) -> float:
    """Return the median time of a replay."""
    import torch

    times = []
    for _ in range(REPLAYS):
        one, two = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        one.record()
        replay()
        two.record()
        torch.cuda.synchronize()
        times.append(one.elapsed_time(two))
    return statistics.median(times)


def main() -> None:
    """Start, and write down when what was done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=("torch", "foundry", "peer-save", "peer-load"))
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--first", type=int, default=0, help="ask for this size first, and time that")
    wanted = parser.parse_args()
    told: dict[str, Any] = {"first": wanted.first}
    began = float(os.environ["BEGAN"])
    moments: dict[str, float] = {}

    def moment(name: str) -> None:
        moments[name] = time.clock_gettime(time.CLOCK_MONOTONIC) - began

    moment("interpreter")
    import torch

    peer: Any = None
    if wanted.way.startswith("peer"):
        import foundry as peer
    moment("imports")
    torch.cuda.init()
    torch.cuda.synchronize()
    moment("context")
    if wanted.way == "peer-load":
        peer.load_cuda_modules_and_libraries(str(wanted.folder))
        torch.cuda.synchronize()
    moment("modules")
    if peer is not None:
        peer.set_allocation_region(PEER_BASE, PEER_BYTES)
    module = job()
    with torch.device("cuda"), torch.no_grad():
        model, ids, position = module.inputs(1)
        torch.cuda.synchronize()
        moment("weights")
        sizes = sorted(module.BATCH_SIZES, reverse=True)
        arguments = (model, ids, position, sizes)
        if wanted.way == "torch":
            replays = by_torch(*arguments)
        elif wanted.way == "foundry":
            replays = by_foundry(*arguments, told)
        elif wanted.way == "peer-save":
            replays = by_peer_saved(wanted.folder, *arguments)
        else:
            replays = by_peer_loaded(wanted.folder, sizes)
        torch.cuda.synchronize()
        moment("graphs")
        replays[1]()
        torch.cuda.synchronize()
        moment("first token")
        for replay in replays.values():
            replay()
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        times = {str(streams): replay_milliseconds(replays[streams]) for streams in REPLAYED}
    told |= {"moments": moments, "device_bytes": total - free, "replay_ms": times}
    wanted.out.write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
