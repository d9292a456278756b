"""Random numbers inside graphs follow torch's generator, in a restore as in a capture.

Kernels that torch captures read seed and offset from two int64 tensors that belong to the generator. Before a replay
torch fills them from the generator and moves the generator's offset on by what the graph consumes. A restore has to do
the same, so it must know where the two tensors lie and how much a graph consumes; torch says neither.

Where: the generator allocates them when the first graph registers with it. A graph that is registered here first, and
is never captured, makes it allocate them in a pool of our own, where they are the only blocks. That happens at the same
point of a capture and a restore, so they lie at the same addresses.

How much: torch keeps it in the graph, and the generator's state remembers that of the last capture. A probe graph to
which the state is added *during* its capture takes over that number, as torch resets it only where a capture begins;
replaying the probe moves the generator on by it.

Both rest on how torch 2.6 to 2.11 do it, and are tried once on a graph with known random numbers before they are used.
A torch that does it otherwise makes graphs with random numbers refused by name, never wrong.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from foundry.capi import Hook
from foundry.torch import memory
from foundry.torch.tensors import tensor_at

REFUSAL = "random numbers inside the graph"
PROBE_OFFSET = 4096
STREAMS = 64
"""More than the streams of a device that torch gives out in turn."""


class GeneratorState:
    """Seed and offset tensors of a device's default generator. Make it at the same point of a capture and a restore."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.generator: Any = torch.cuda.default_generators[device.index]
        self.reason: str | None = None
        self.seed_address = self.offset_address = 0
        self._proven: bool | None = None
        self._other: torch.cuda.Stream | None = None
        self._pool = torch.cuda.MemPool()
        self._keeper = torch.cuda.CUDAGraph()
        with torch.cuda.use_mem_pool(self._pool, device=device):
            self._keeper.register_generator_state(self.generator)
        blocks = memory.live_blocks(device, self._pool.id)
        if [size for _, size in blocks] == [8, 8]:
            self.seed_address, self.offset_address = (address for address, _ in blocks)
        elif blocks:
            self.reason = f"torch {torch.__version__} keeps the generator's state in an unknown form"
        else:
            self.reason = (
                f"torch {torch.__version__} keeps the generator's state out of reach, "
                "or the program captured a graph of its own before"
            )

    @functools.cached_property
    def _pair(self) -> tuple[torch.Tensor, torch.Tensor]:
        # Tensors of inference mode could not be filled outside it.
        with torch.inference_mode(False):
            seed = tensor_at(self.seed_address, 1, torch.int64, self.device)
            return seed, tensor_at(self.offset_address, 1, torch.int64, self.device)

    def prepare_replay(self, increment: int) -> None:
        """Fill seed and offset on the current stream and move the generator on, as torch does before a replay."""
        seed, offset = self._pair
        position = self.generator.get_offset()
        seed.fill_(_signed(self.generator.initial_seed()))
        offset.fill_(_signed(position))
        self.generator.set_offset(position + increment)

    def prove(self, hook: Hook, stream: torch.cuda.Stream) -> bool:
        """Try both ways of this module, once, on a graph of known random numbers. False sets `reason`."""
        if self._proven is None:
            self._proven = self.reason is None and self._try(hook, stream)
            if not self._proven and self.reason is None:
                self.reason = f"torch {torch.__version__} keeps the generator's state in another way than expected"
        return self._proven

    def _try(self, hook: Hook, stream: torch.cuda.Stream) -> bool:
        before = self.generator.get_offset()
        try:
            with memory.scratch(hook, "random state", self.device), torch.cuda.stream(stream):
                numbers = torch.empty(8, device=self.device)
                numbers.uniform_()
                expected = self.generator.get_offset() - before
                graph = torch.cuda.CUDAGraph()
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    numbers.uniform_()
                finally:
                    graph.capture_end()
                measured = self.consumed(hook, stream, offset=PROBE_OFFSET)
                seed, offset = (int(tensor.item()) for tensor in self._pair)
                graph.reset()
        except (RuntimeError, AttributeError) as error:
            self.reason = f"torch {torch.__version__} refused the probe: {str(error).splitlines()[0]}"
            return False
        finally:
            self.generator.set_offset(before)
        found = (measured, seed, offset)
        return expected > 0 and found == (expected, _signed(self.generator.initial_seed()), PROBE_OFFSET)

    def _aside(self, stream: torch.cuda.Stream) -> torch.cuda.Stream:
        """Return a stream that is not the given one: torch has few, and gives them out in turn."""
        for _ in range(STREAMS):
            if self._other is not None and self._other.cuda_stream != stream.cuda_stream:
                return self._other
            self._other = torch.cuda.Stream(self.device)
        raise RuntimeError("torch has no second stream")

    def consumed(self, hook: Hook, stream: torch.cuda.Stream, *, offset: int | None = None) -> int:
        """Return how far a replay of the graph that was captured last moves the generator, which stays where it was.

        `offset` is where the generator stands during the probe's replay.
        """
        before = self.generator.get_offset()
        state = self.generator.graphsafe_get_state()
        aside = self._aside(stream)
        with memory.scratch(hook, "random state", self.device):
            probe = torch.cuda.CUDAGraph()
            with torch.cuda.stream(stream):
                cell = torch.zeros(1, device=self.device)
                stream.synchronize()
                self.generator.graphsafe_set_state(state.clone_state())
                try:
                    probe.capture_begin(capture_error_mode="thread_local")
                    try:
                        cell.zero_()
                        with torch.cuda.stream(aside):
                            probe.register_generator_state(state)
                    finally:
                        probe.capture_end()
                finally:
                    self.generator.graphsafe_set_state(state)
                try:
                    start = before if offset is None else offset
                    self.generator.set_offset(start)
                    probe.replay()
                    stream.synchronize()
                    return int(self.generator.get_offset()) - start
                finally:
                    self.generator.set_offset(before)
                    # The pool of this phase can only go when nothing of the probe lives in it.
                    del probe, cell


@functools.cache
def generator_state(device: torch.device) -> GeneratorState:
    """Return the one `GeneratorState` of a device."""
    return GeneratorState(device)


def _signed(value: int) -> int:
    """Return an unsigned 64-bit value as the int64 with the same bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
