"""The program that is captured and restored again and again, and that replays, captures and updates for a long time.

    python tests/soak/program.py KIND [--count N] [--image FILE] [--seed N]

KIND is `once` (each graph, one replay), `replays`, `captures` (capture, instantiate, launch, destroy) or `updates` (the
same, but into an executable graph that stays); `watch` answers each line of its input with the free memory of the
device. Prints one JSON object; a wrong result ends it with exit status 1. FILE is the kernel's image for the simulator.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from work import BATCHES, WIDTH, Device, Words, expected

from foundry.graphs import Graph, GraphSet, commit

SAMPLES = 100
"""How often the state of the process is looked at in a run."""
LEAKS: list[bytes] = []
"""What `--leak` keeps, for the test that shows that it is noticed."""


def state(device: Device) -> dict[str, int]:
    """Look at what a process can leak."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    spool = Path(os.environ.get("FOUNDRY_SPOOL", "/nowhere"))
    return {
        "spool_bytes": sum(path.stat().st_size for path in spool.glob("*/events")),
        "host_bytes": pages * resource.getpagesize(),
        "open_files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "device_bytes": -device.free_bytes(),
    }


class Soak:
    """The graphs of a process, and fresh inputs for them."""

    def __init__(self, image: Path | None, seed: int, leak: int) -> None:
        self.device = Device(image)
        self.graphs: dict[int, Graph] = {}
        self.leak = leak
        self._random = np.random.default_rng(seed)
        self.set = GraphSet("soak")
        self.samples: list[dict[str, int]] = []
        self.digest = hashlib.sha256()

    def fresh(self, batch: int) -> Words:
        """Draw an input."""
        return self._random.integers(0, 1 << 32, batch * WIDTH, np.uint32)

    def get(self, batch: int) -> Graph:
        """Get a graph: captured, or restored."""
        device = self.device
        count = batch * WIDTH

        def warm_up() -> None:
            device.step(count, batch)
            device.wait()

        def capture() -> Any:
            graph = device.capture(count, batch)
            executable = device.instantiate(graph)
            device.driver("cuGraphDestroy", graph)
            return lambda stream: device.driver("cuGraphLaunch", executable, ctypes.c_void_p(stream))

        pointers = [device.input, device.work, device.output]
        return self.set.capture_or_restore(batch, warm_up=warm_up, capture=capture, inputs={"pointers": pointers})

    def check(self, batch: int, salt: int, launch: Any) -> None:
        """Launch on a fresh input; end the program if the output is not what the processor computes."""
        given = self.fresh(batch)
        found = self.device.results(given, launch)
        wanted = expected(given, salt)
        if not np.array_equal(found, wanted):
            wrong = int(np.flatnonzero(found != wanted)[0])
            sys.exit(f"wrong result: key {batch}, salt {salt}, word {wrong}: {found[wrong]} instead of {wanted[wrong]}")
        self.digest.update(found.tobytes())
        if self.leak:
            LEAKS.append(os.urandom(self.leak))

    def replay(self, number: int) -> None:
        """Replay the next of all graphs."""
        batch = BATCHES[number % len(BATCHES)]
        self.check(batch, batch, self.graphs[batch].launch)

    def recapture(self, number: int) -> None:
        """Capture, instantiate, launch and destroy, with memory that comes and goes."""
        device, batch = self.device, BATCHES[number % len(BATCHES)]
        extra = device.allocate(4096 + number % 7 * 100_000)
        graph = device.capture(batch * WIDTH, number)
        executable = device.instantiate(graph)
        device.driver("cuGraphDestroy", graph)
        self.check(batch, number, lambda stream: device.driver("cuGraphLaunch", executable, ctypes.c_void_p(stream)))
        device.driver("cuGraphExecDestroy", executable)
        device.free(extra)

    def update(self, number: int) -> None:
        """Capture the same work with other values, and update the executable graph that stays with it."""
        device, batch = self.device, BATCHES[-1]
        graph = device.capture(batch * WIDTH, number)
        if number == 0:
            self._updated = device.instantiate(graph)
        else:
            outcome = (ctypes.c_uint64 * 4)()
            device.driver("cuGraphExecUpdate_v2", self._updated, graph, outcome)
        device.driver("cuGraphDestroy", graph)
        self.check(batch, number, lambda stream: device.driver("cuGraphLaunch", self._updated, ctypes.c_void_p(stream)))

    def repeat(self, work: Any, count: int) -> None:
        """Do it so often, and look at the process from time to time."""
        every = max(1, count // SAMPLES)
        for number in range(count):
            work(number)
            if number % every == every - 1:
                self.samples.append(state(self.device))


def watch(device: Device) -> None:
    """Tell the free memory of the device whenever a line comes in."""
    for _ in sys.stdin:
        print(device.free_bytes(), flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="what the soak tests run")
    parser.add_argument("kind", choices=("once", "replays", "captures", "updates", "watch"))
    parser.add_argument("--count", type=int, default=len(BATCHES))
    parser.add_argument("--image", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--leak", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.kind == "watch":
        watch(Device(arguments.image))
        return
    soak = Soak(arguments.image, arguments.seed, arguments.leak)
    for batch in reversed(BATCHES):
        soak.graphs[batch] = soak.get(batch)
    commit()
    kinds = {"once": soak.replay, "replays": soak.replay, "captures": soak.recapture, "updates": soak.update}
    begin = time.perf_counter()
    soak.repeat(kinds[arguments.kind], arguments.count)
    json.dump(
        {
            "restored": sum(graph.restored for graph in soak.graphs.values()),
            "reasons": soak.set.reasons,
            "count": arguments.count,
            "seconds": time.perf_counter() - begin,
            "digest": soak.digest.hexdigest(),
            "samples": soak.samples if arguments.kind != "once" else soak.samples[-1:],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
