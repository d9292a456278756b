"""A graph that can be replayed, and its outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from foundry.capi import Hook
from foundry.torch.random_state import GeneratorState


class Graph:
    """A captured or restored graph. `outputs` has the nesting that the captured function returned.

    `inputs` are those that it was asked for with: they must live as long as it is replayed.
    `restored` tells which of the two it is, `reason` why a restore captured it anew.
    """

    def __init__(
        self,
        key: str,
        inputs: Sequence[Any],
        outputs: Any,
        replay: Callable[[], None],
        *,
        restored: bool,
        reason: str | None,
    ) -> None:
        self.key = key
        self.inputs = inputs
        self.outputs = outputs
        self.restored = restored
        self.reason = reason
        self.replay = replay
        """Launch the graph on the current stream of its device."""

    def __repr__(self) -> str:
        return f"<Graph {self.key} {'restored' if self.restored else 'captured'}>"


def launcher(hook: Hook, graph: int, device: torch.device, state: GeneratorState, consumed: int) -> Callable[[], None]:
    """Return what replays a restored graph as `torch.cuda.CUDAGraph.replay` would have."""
    index = device.index
    launch = hook.launch
    current_device = torch.cuda.current_device
    raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or _raw_stream

    def replay() -> None:
        if current_device() != index:
            with torch.cuda.device(index):
                replay()
            return
        if consumed:
            state.prepare_replay(consumed)
        launch(graph, raw_stream(index))

    return replay


def _raw_stream(index: int) -> int:
    return int(torch.cuda.current_stream(index).cuda_stream)
