"""`torch.cuda` of `fake_torch`: streams, pools, graphs, and the generator's two ways to keep its state for graphs."""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any


class State:
    """What torch calls CUDAGeneratorState: shared by generators and registered graphs."""

    def __init__(self, seed: int, offset: int) -> None:
        self.seed, self.offset = seed, offset
        self.intragraph = 0
        self.capturing = False
        self.graphs: set[Any] = set()
        self.pair: Any = None


class Generator:
    def __init__(self, torch: Any, state: State) -> None:
        self.torch, self.state = torch, state

    def initial_seed(self) -> int:
        return self.state.seed

    def manual_seed(self, seed: int) -> None:
        self.state.seed, self.state.offset = seed, 0

    def get_offset(self) -> int:
        assert self.torch.cuda.is_outside_capture(), "during capture"
        return self.state.offset

    def set_offset(self, offset: int) -> None:
        assert offset % 4 == 0
        self.state.offset = offset

    def graphsafe_get_state(self) -> Generator:
        return Generator(self.torch, self.state)

    def graphsafe_set_state(self, other: Generator) -> None:
        self.state = other.state

    def clone_state(self) -> Generator:
        return Generator(self.torch, State(self.state.seed, self.state.offset))

    def kernel_input(self) -> Callable[[], Any]:
        """Return what reads (seed, offset) when the kernel runs; take the numbers from the generator now."""
        state = self.state
        if self.torch.cuda.is_outside_capture():
            assert not state.capturing, "Offset increment outside graph capture"
            taken = (state.seed, state.offset)
            state.offset += 4
            return lambda: taken
        if self.torch.style == "2.13":
            pair = self.torch.capturing.pair_of(state)
            within, self.torch.capturing.consumed = self.torch.capturing.consumed, self.torch.capturing.consumed + 4
        else:
            assert state.capturing, "not in capture mode"
            pair, within = state.pair, state.intragraph
            state.intragraph += 4
        cells, (seed, offset) = self.torch.cells, pair
        return lambda: (cells[seed.data_ptr()] % 2**64, cells[offset.data_ptr()] + within)


def make_graph(torch: Any) -> Any:
    class CUDAGraph:
        def __init__(self) -> None:
            self.increments: dict[State, int] = {}
            self.kernels: list[Callable[[], None]] = []
            self.pair: Any = None
            self.consumed = 0

        def register_generator_state(self, generator: Generator) -> None:
            if not torch.cuda.is_outside_capture():
                raise RuntimeError("Cannot register the state during capturing stage")
            state = generator.state
            if torch.style != "2.13":
                if not state.graphs:
                    state.pair = tuple(torch.empty(1, dtype=torch.int64) for _ in range(2))
                state.graphs.add(self)
            self.increments[state] = 0

        def pair_of(self, state: State) -> Any:
            if self.pair is None:
                self.pair = tuple(torch.empty(1, dtype=torch.int64) for _ in range(2))
            return self.pair

        def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
            self.register_generator_state(torch.cuda.default_generators[0])
            for state in self.increments:
                state.capturing, state.intragraph = torch.style != "2.13", 0
            assert torch.stream_now.index, "graphs must be captured on a non-default stream"
            self.stream, self.pool_id, torch.capturing = torch.stream_now, pool or (9, id(self)), self

        def capture_end(self) -> None:
            assert torch.stream_now is self.stream
            torch.capturing = None
            for state in self.increments:
                state.capturing = False
                self.increments[state] = self.consumed if torch.style == "2.13" else state.intragraph
            torch.hook.instantiate()

        def replay(self) -> None:
            for state, increment in self.increments.items():
                if increment:
                    pair = self.pair or state.pair
                    pair[0].fill_(((state.seed + 2**63) % 2**64) - 2**63)
                    pair[1].fill_(state.offset)
                    state.offset += increment
            for kernel in self.kernels:
                kernel()

        def reset(self) -> None:
            for state in self.increments:
                state.graphs.discard(self)

        __del__ = reset

    return CUDAGraph


class Cuda(types.SimpleNamespace):
    """The module `torch.cuda`."""

    def __init__(self, torch: Any) -> None:
        super().__init__()
        numbers, pools = itertools.count(), itertools.count(1)

        class Stream:
            def __init__(self, device: Any = None) -> None:
                # As in torch, where the streams of a device come from a pool of 32 and are given out in turn.
                self.index = next(numbers)
                self.cuda_stream = (self.index % 32 + 1) * 16 if self.index else 0

            def synchronize(self) -> None:
                assert torch.capturing is None

            def wait_stream(self, other: Any) -> None:
                torch.events.append("wait stream")

        class MemPool:
            def __init__(self) -> None:
                self.id = (0, next(pools))

            def __del__(self) -> None:
                # The real destructor ends the process if any pool is in use then; here the test finds it in the list.
                if torch.pools:
                    torch.events.append("abort: a pool was dropped while one was in use")

        self.torch, self.Stream, self.MemPool, self.CUDAGraph = torch, Stream, MemPool, make_graph(torch)
        self.default_generators = [Generator(torch, State(0, 0))]

    def is_outside_capture(self) -> bool:
        torch = self.torch
        return torch.capturing is None or torch.stream_now.cuda_stream != torch.capturing.stream.cuda_stream

    def get_allocator_backend(self) -> str:
        return str(self.torch.backend)

    def current_device(self) -> int:
        return 0

    def current_stream(self, device: Any = None) -> Any:
        return self.torch.stream_now

    def graph_pool_handle(self) -> tuple[int, int]:
        return (5, 0)

    def synchronize(self, device: Any = None) -> None:
        assert self.torch.capturing is None

    def empty_cache(self) -> None:
        self.torch.events.append("empty cache")

    @contextlib.contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        before, self.torch.stream_now = self.torch.stream_now, stream
        try:
            yield
        finally:
            self.torch.stream_now = before

    @contextlib.contextmanager
    def use_mem_pool(self, pool: Any, device: Any = None) -> Iterator[None]:
        if pool.id in self.torch.pools:
            raise RuntimeError("beginAllocateToPool: already recording to mempool_id")
        self.torch.pools.append(pool.id)
        try:
            yield
        finally:
            self.torch.pools.pop()

    @contextlib.contextmanager
    def graph(self, graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "") -> Iterator[None]:
        with self.stream(stream):
            graph.capture_begin(pool)
            try:
                yield
            finally:
                graph.capture_end()

    def memory_snapshot(self, pool: Any = None) -> list[dict[str, Any]]:
        return [
            {"device": 0, "address": address, "segment_pool_id": pool,
             "blocks": [{"size": 512, "requested_size": size, "state": "active_allocated"}]}
            for address, (pool, size) in self.torch.blocks.items()
        ]  # fmt: skip
