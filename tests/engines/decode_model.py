"""A tiny language model on the driver API: integer arithmetic, so that equal prompts give equal tokens everywhere.

One decode step takes a token and a position for each row of a batch and gives the next token of each; keys and values
of earlier positions lie in a cache with one slot a row. A CUDA graph for each of several batch sizes runs the step.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
from cuda.bindings import driver

from foundry.graphs import GraphSet, Span

HIDDEN, VOCABULARY, POSITIONS, LAYERS = 64, 256, 128, 4
BATCH_SIZES = (1, 2, 4, 8, 16)
KERNELS = Path(__file__).resolve().parent / "kernels"
THREADS = 64


def call(answer: tuple[Any, ...]) -> Any:
    """Return what a driver function gave, or raise with the name of its error."""
    result, *values = answer
    if int(result) != 0:
        raise RuntimeError(f"the driver said {result!r}")
    return values[0] if values else None


def simulated() -> bool:
    """Whether the driver of this process is foundry's simulator."""
    return hasattr(ctypes.CDLL("libcuda.so.1"), "foundry_sim_version")


def kernel_image(folder: Path | None = None) -> bytes:
    """Return the kernels for the driver of this process; those of the simulator are compiled, and kept in `folder`."""
    if not simulated():
        return (KERNELS / "decode.ptx").read_bytes() + b"\0"
    import foundry

    maker = Path(foundry.__file__).resolve().parent / "native" / "sim" / "make_image.py"
    folder = folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foundry-demo"
    sources = [KERNELS / "decode.c", KERNELS / "decode_math.h", maker, maker.with_name("sim_kernel.h")]
    stamp = "-".join(str(source.stat().st_mtime_ns) for source in sources)
    image = folder / f"decode-{stamp}.fsim"
    if not image.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = image.with_suffix(f".{os.getpid()}")
        environment = {
            name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")
        }
        environment["CC"] = f"{os.environ.get('CC', 'cc')} -I {shlex.quote(str(KERNELS))}"
        subprocess.run([sys.executable, maker, unfinished, KERNELS / "decode.c"], check=True, env=environment)
        unfinished.replace(image)
    return image.read_bytes()


class Model:
    """Weights, cache and kernels on device 0, for one thread at a time; `bind` makes another thread the user."""

    def __init__(self, batch: int = BATCH_SIZES[-1], seed: int = 1) -> None:
        call(driver.cuInit(0))
        device = call(driver.cuDeviceGet(0))
        self.context = call(driver.cuDevicePrimaryCtxRetain(device))
        self.bind()
        self.stream = call(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)))
        self.module = call(driver.cuModuleLoadData(kernel_image()))
        names = ("embed", "normalise", "matvec", "append", "attend", "add", "pick")
        self.kernels = {name: call(driver.cuModuleGetFunction(self.module, name.encode())) for name in names}
        self.batch = batch
        numbers = numpy.random.Generator(numpy.random.PCG64(seed))

        def weights(*shape: int) -> int:
            return self._upload(numbers.integers(-127, 128, shape, dtype=numpy.int32))

        self.table, self.head = weights(VOCABULARY, HIDDEN), weights(VOCABULARY, HIDDEN)
        self.layers = [[weights(HIDDEN, HIDDEN) for _ in range(4)] for _ in range(LAYERS)]
        cache = numpy.zeros((batch, POSITIONS, HIDDEN), numpy.int32)
        self.caches = [(self._upload(cache), self._upload(cache)) for _ in range(LAYERS)]
        row = numpy.zeros((batch, HIDDEN), numpy.int32)
        self.x, self.y, self.query, self.key, self.value, self.mixed = (self._upload(row) for _ in range(6))
        one = numpy.zeros(batch, numpy.int32)
        self.ids, self.positions, self.next = (self._upload(one) for _ in range(3))
        call(driver.cuCtxSynchronize())
        self.launches: dict[int, Callable[[Any], None]] = {}
        self.restored = 0

    def bind(self) -> None:
        """Make the model's context current in the calling thread."""
        call(driver.cuCtxSetCurrent(self.context))

    def _upload(self, values: Any) -> int:
        pointer = call(driver.cuMemAlloc(values.nbytes))
        call(driver.cuMemcpyHtoD(pointer, values.ctypes.data, values.nbytes))
        return int(pointer)

    def _launch(self, name: str, threads: int, *arguments: int) -> None:
        *pointers, batch = arguments
        types = (ctypes.c_void_p,) * len(pointers) + (ctypes.c_uint,)
        blocks = -(-threads // THREADS)
        call(
            driver.cuLaunchKernel(
                self.kernels[name], blocks, 1, 1, THREADS, 1, 1, 0, self.stream, ((*pointers, batch), types), 0
            )
        )

    def step(self, batch: int) -> None:
        """Launch one decode step for the first rows of the batch on the model's stream."""
        elements = batch * HIDDEN
        self._launch("embed", elements, self.x, self.ids, self.table, batch)
        for (query, key, value, out), (keys, values) in zip(self.layers, self.caches, strict=True):
            self._launch("normalise", elements, self.y, self.x, batch)
            self._launch("matvec", elements, self.query, self.y, query, batch)
            self._launch("matvec", elements, self.key, self.y, key, batch)
            self._launch("matvec", elements, self.value, self.y, value, batch)
            self._launch("append", elements, keys, self.key, self.positions, batch)
            self._launch("append", elements, values, self.value, self.positions, batch)
            self._launch("attend", elements, self.mixed, self.query, keys, values, self.positions, batch)
            self._launch("matvec", elements, self.y, self.mixed, out, batch)
            self._launch("add", elements, self.x, self.y, batch)
        self._launch("normalise", elements, self.y, self.x, batch)
        self._launch("pick", batch, self.next, self.y, self.head, batch)

    def warm_up(self, batch: int) -> None:
        """Run a step once outside a capture, in memory that is given back: a server's first run allocates like this."""
        room = call(driver.cuMemAlloc(batch * HIDDEN * 4))
        self.step(batch)
        call(driver.cuStreamSynchronize(self.stream))
        call(driver.cuMemFree(room))

    def capture(self, batch: int) -> Callable[[int], None]:
        """Capture a step and return what launches it."""
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        call(driver.cuStreamBeginCapture(self.stream, mode))
        self.step(batch)
        graph = call(driver.cuStreamEndCapture(self.stream))
        executable = call(driver.cuGraphInstantiate(graph, 0))
        call(driver.cuGraphDestroy(graph))
        return lambda stream: call(driver.cuGraphLaunch(executable, stream))

    def make_graphs(self, sizes: tuple[int, ...] = BATCH_SIZES) -> None:
        """Get a graph for each batch size, largest first."""
        graphs = GraphSet("decode")
        watched = [self.table, self.head, *(weight for layer in self.layers for weight in layer)]
        watched += [pointer for pair in self.caches for pointer in pair]
        watched += [self.x, self.y, self.query, self.key, self.value, self.mixed, self.ids, self.positions, self.next]
        for size in sorted(sizes, reverse=True):
            graph = graphs.capture_or_restore(
                size,
                warm_up=lambda size=size: self.warm_up(size),
                capture=lambda size=size: self.capture(size),
                inputs={"batch": size, "pointers": watched},
                spans=self.spans(size),
            )
            self.launches[size] = graph.launch
            self.restored += graph.restored

    def spans(self, batch: int) -> list[Span]:
        """Name what a step reads and writes, but for the weights, with the numbers that it may be tried on."""
        rows, row = batch * 4, batch * HIDDEN * 4
        found = [
            Span(self.ids, rows, 0, VOCABULARY),
            Span(self.positions, rows, 0, POSITIONS),
            Span(self.next, rows, 0, 1),
        ]
        found += [Span(pointer, row * POSITIONS, -127, 128) for pair in self.caches for pointer in pair]
        scratch = (self.x, self.y, self.query, self.key, self.value, self.mixed)
        return [*found, *(Span(pointer, row, 0, 1) for pointer in scratch)]

    def run(self, ids: list[int], positions: list[int], *, eager: bool = False) -> list[int]:
        """Run one step for these rows and return their next tokens, by the smallest graph that holds them."""
        rows = len(ids)
        size = rows if eager else min(size for size in self.launches if size >= rows)
        padding = [0] * (size - rows)
        for target, values in ((self.ids, ids), (self.positions, positions)):
            data = numpy.array(values + padding, numpy.int32)
            # In the order of the stream: a copy from pageable memory may end after the call that makes it.
            call(driver.cuMemcpyHtoDAsync(target, data.ctypes.data, data.nbytes, self.stream))
        if eager:
            self.step(size)
        else:
            self.launches[size](self.stream)
        call(driver.cuStreamSynchronize(self.stream))
        tokens = numpy.zeros(size, numpy.int32)
        call(driver.cuMemcpyDtoH(tokens.ctypes.data, self.next, tokens.nbytes))
        return [int(token) for token in tokens[:rows]]
