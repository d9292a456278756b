"""A process with a hook, a torch of the tests' own, and the adapters' passes on top of it."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers.fake_hook import FakeHook
from helpers.fake_torch import FakeTorch

from foundry.capi import Mode

Start = Callable[..., Any]
FOLLOWING = "foundry.engines.vllm.following"


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process: `start(Mode.CAPTURE)`, or `start(Mode.RESTORE, after=world)` with what that world stored."""
    before = {name: module for name, module in sys.modules.items() if _ours(name)}

    def _start(
        mode: Mode, after: Any = None, pins: Any = None, random_numbers: bool = False, style: str = "2.11"
    ) -> Any:
        _forget()
        hook = FakeHook(mode, after.hook.archive if after else None)
        sys.modules["torch"] = torch = FakeTorch(hook, style=style)  # type: ignore[assignment]
        from foundry.engines import torch_seam

        # Not `from foundry.engines import`, which would give the passes of the test before.
        passes = importlib.import_module("foundry.engines.passes")
        graphs = types.ModuleType("torch.cuda.graphs")
        graphs.graph = _graph_class(torch)  # type: ignore[attr-defined]
        torch_seam.patch(graphs)
        device = torch.device("cuda", 0)
        device.type = "cuda"
        own = passes.Pass(hook, "toy", device, pins or {"model": "small"}, random_numbers=random_numbers)
        return types.SimpleNamespace(
            hook=hook, torch=torch, own=own, passes=passes, seam=torch_seam, graph=graphs.graph, module=graphs
        )

    yield _start
    _forget()
    sys.modules.update(before)


def _graph_class(torch: Any) -> Any:
    class Graph:
        def __init__(self, cuda_graph: Any, stream: Any) -> None:
            self.cuda_graph, self.capture_stream = cuda_graph, stream
            self.context = torch.cuda.stream(stream)

        def __enter__(self) -> None:
            torch.cuda.empty_cache()
            self.context.__enter__()
            self.cuda_graph.capture_begin()

        def __exit__(self, *args: object) -> None:
            self.cuda_graph.capture_end()
            self.context.__exit__(*args)

    return Graph


def _ours(name: str) -> bool:
    return name == "torch" or name.startswith(
        ("torch.", "foundry.torch", "foundry.engines.passes", "foundry.engines.signatures", FOLLOWING)
    )


def _forget() -> None:
    for name in [name for name in sys.modules if _ours(name)]:
        del sys.modules[name]
