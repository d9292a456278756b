"""`CUDAGraphWrapper`: graphs of pieces of a compiled model, and of a whole model in the V1 runner.

The wrapper's own call runs. At the call that would capture, its runnable gives the outputs of the archive's graph, and
`torch.cuda.graph` the graph. The class is patched during the capture loop only: it costs nothing while serving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from foundry.engines import torch_seam
from foundry.engines.passes import Pass
from foundry.engines.vllm import keys


class Pieces:
    """Numbers the wrappers in the order in which they capture first, and answers for them."""

    def __init__(self, own: Pass) -> None:
        self._own = own
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []

    @contextmanager
    def patched(self, module: Any) -> Iterator[None]:
        """Answer for all wrappers during the block. `module` is vLLM's."""
        wrapper = module.CUDAGraphWrapper
        plain = wrapper.__call__

        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            return self._call(module, plain, this, args, kwargs)

        wrapper.__call__ = call
        try:
            yield
        finally:
            wrapper.__call__ = plain

    def _call(self, module: Any, plain: Callable[..., Any], this: Any, args: Any, kwargs: Any) -> Any:
        descriptor = about_to_capture(module, this)
        if descriptor is None:
            return plain(this, *args, **kwargs)
        own, runnable = self._own, this.runnable
        kind = keys.name_of(this.runtime_mode)
        key = f"{self._number(this)}/{keys.of_batch(descriptor)}" if kind == keys.PIECES else keys.of_batch(descriptor)
        claim = own.claim(kind, key, (args, kwargs))
        if own.restores and claim.found is None and not own.warmed:
            with own.warm_up(f"{kind}/{key}"):
                runnable(*args, **kwargs)
        this.runnable = lambda *given, **named: claim.run(runnable, *given, **named)
        try:
            with torch_seam.expecting(claim):
                return plain(this, *args, **kwargs)
        finally:
            this.runnable = runnable

    def _number(self, this: Any) -> int:
        if id(this) not in self._numbers:
            self._numbers[id(this)] = len(self._numbers)
            self._held.append(this)
        return self._numbers[id(this)]


def about_to_capture(module: Any, this: Any) -> Any | None:
    """Return the batch for which a call of the wrapper would capture a graph, None if it would not."""
    if not module.is_forward_context_available():
        return None
    context = module.get_forward_context()
    mode, descriptor = context.cudagraph_runtime_mode, context.batch_descriptor
    if mode != this.runtime_mode or descriptor is None:
        return None
    entry = this.concrete_cudagraph_entries.get(descriptor)
    return descriptor if entry is None or entry.cudagraph is None else None
