"""Graphs of CuPy: named ones through `foundry.graphs`, and one without a name, as CuPy programs make them.

    python cupy_job.py

Prints a digest for each graph and round, each on inputs of its own; ends with 1 where a graph gives other bytes than
its launches. What became of the graphs goes to stderr as JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import cupy
import numpy
from rounds import Rounds

from foundry.graphs import GraphSet, commit

SIZES = (1 << 14, 1 << 12, 1 << 10)
RAW = r"""
extern "C" __global__ void combine(unsigned *out, const unsigned *one, const unsigned *other, unsigned count) {
    unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) out[index] += one[index] + 3 * other[count - 1 - index];
}
"""


class Job:
    """Arrays and kernels; a pass adds to its output what it makes of its input, and takes no memory for that."""

    def __init__(self) -> None:
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.input, self.output = (cupy.empty(SIZES[0], numpy.uint32) for _ in range(2))
        self.mix = cupy.ElementwiseKernel("uint32 by", "uint32 x", "x = (x ^ x >> 15) * 2654435761u + by", "mix")
        self.combine = cupy.RawKernel(RAW, "combine")

    def record(self, size: int) -> None:
        """Launch a pass on the job's stream."""
        with self.stream:
            self.mix(numpy.uint32(size + 7), self.input[:size])
            arguments = (self.output, self.input, self.input, numpy.uint32(size))
            self.combine((size // 256,), (256,), arguments)

    def warm_up(self, size: int) -> None:
        self.record(size)
        self.stream.synchronize()

    def capture(self, size: int) -> Callable[[int], object]:
        """Record a pass and return what launches it."""
        self.stream.begin_capture()
        self.record(size)
        graph = self.stream.end_capture()
        return lambda _: graph.launch(self.stream)

    def run(self, values: numpy.ndarray, work: Callable[[], object]) -> bytes:
        """Give what the work makes of these values."""
        size = len(values)
        self.input[:size].set(values, stream=self.stream)
        self.output[:size].set(numpy.full_like(values, 1), stream=self.stream)
        work()
        found: numpy.ndarray = self.output[:size].get(stream=self.stream)
        self.stream.synchronize()
        return found.tobytes()


def main() -> int:
    """Run the command line."""
    job = Job()
    graphs, rounds = GraphSet("cupy"), Rounds(job.run)
    base = graphs.hook.range_base(0)
    made = {
        size: graphs.capture_or_restore(
            size,
            capture=partial(job.capture, size),
            warm_up=partial(job.warm_up, size),
            inputs={"addresses": [job.input.data.ptr - base, job.output.data.ptr - base]},
        )
        for size in SIZES
    }
    job.warm_up(SIZES[-1])
    without_name = job.capture(SIZES[-1])
    commit()
    for size, graph in made.items():
        rounds.compare(size, size, partial(graph.launch, job.stream.ptr), partial(job.record, size))
    rounds.compare("nameless", SIZES[-1], partial(without_name, 0), partial(job.record, SIZES[-1]))
    return rounds.finish(made, graphs.reasons)


if __name__ == "__main__":
    sys.exit(main())
