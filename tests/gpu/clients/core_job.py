"""Graphs of cuda.core: named ones through `foundry.graphs`, and one without a name, as its programs make them.

    python core_job.py [--image FILE]

Prints a digest for each graph and round, each on inputs of its own; ends with 1 where a graph gives other bytes than
its launches. What became of the graphs goes to stderr as JSON. `--image`: kernels that are compiled already.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from rounds import Rounds, call

from foundry.graphs import GraphSet, commit

SIZES = (1 << 14, 1 << 12, 1 << 10)
SOURCE = """
extern "C" __global__ void mix(unsigned *data, unsigned count, unsigned by) {
    unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) data[index] = (data[index] ^ data[index] >> 15) * 2654435761u + by;
}
extern "C" __global__ void combine(unsigned *out, const unsigned *one, const unsigned *other, unsigned count) {
    unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) out[index] += one[index] + 3 * other[count - 1 - index];
}
"""


class Job:
    """Memory and kernels on device 0; a pass adds to its output what it makes of its input."""

    def __init__(self, image: Path | None) -> None:
        device = Device()
        device.set_current()
        self.stream = device.create_stream()
        if image is None:
            program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
            code = program.compile("cubin")
        else:
            code = ObjectCode.from_cubin(image.read_bytes())
        self.mix, self.combine = code.get_kernel("mix"), code.get_kernel("combine")
        self.input, self.output = (int(call(driver.cuMemAlloc(4 * SIZES[0]))) for _ in range(2))

    def record(self, size: int, target: object) -> None:
        """Launch a pass on a stream, or on a builder of graphs."""
        config, count = LaunchConfig(grid=size // 256, block=256), numpy.uint32(size)
        launch(target, config, self.mix, self.input, count, numpy.uint32(size + 7))
        launch(target, config, self.combine, self.output, self.input, self.input, count)

    def warm_up(self, size: int) -> None:
        self.record(size, self.stream)
        self.stream.sync()

    def capture(self, size: int) -> Callable[[int], object]:
        """Record a pass and return what launches it."""
        builder = self.stream.create_graph_builder().begin_building()
        self.record(size, builder)
        graph = builder.end_building().complete()
        return lambda _: graph.launch(self.stream)

    def run(self, values: numpy.ndarray, work: Callable[[], object]) -> bytes:
        """Give what the work makes of these values."""
        handle, found = int(self.stream.handle), numpy.empty_like(values)
        call(driver.cuMemcpyHtoDAsync(self.input, values.ctypes.data, values.nbytes, handle))
        call(driver.cuMemsetD8Async(self.output, 1, values.nbytes, handle))
        work()
        call(driver.cuMemcpyDtoHAsync(found.ctypes.data, self.output, values.nbytes, handle))
        self.stream.sync()
        return found.tobytes()


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="graphs of cuda.core")
    parser.add_argument("--image", type=Path)
    job = Job(parser.parse_args().image)
    graphs, rounds = GraphSet("core"), Rounds(job.run)
    base = graphs.hook.range_base(0)
    made = {
        size: graphs.capture_or_restore(
            size,
            capture=partial(job.capture, size),
            warm_up=partial(job.warm_up, size),
            inputs={"addresses": [job.input - base, job.output - base]},
        )
        for size in SIZES
    }
    job.warm_up(SIZES[-1])
    without_name = job.capture(SIZES[-1])
    commit()
    for size, graph in made.items():
        rounds.compare(size, size, partial(graph.launch, job.stream.handle), partial(job.record, size, job.stream))
    rounds.compare("nameless", SIZES[-1], partial(without_name, 0), partial(job.record, SIZES[-1], job.stream))
    return rounds.finish(made, graphs.reasons)


if __name__ == "__main__":
    sys.exit(main())
