"""`CUDAGraphWrapper`: graphs of pieces of a compiled model, and of a whole model in the V1 runner.

The wrapper's own call runs. At the call that would capture, its runnable gives the outputs of the archive's graph, and
`torch.cuda.graph` the graph. The class is patched during the capture loop only: it costs nothing while serving.

Once the first size has shown which wrapper is which piece, the others' graphs are put into the wrappers as their own
call would have left them, where the archive proves that a run of the model would ask for just these.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from foundry.engines import garbage, torch_seam
from foundry.engines.passes import Claim, Pass
from foundry.engines.vllm import keys
from foundry.engines.vllm.following import Span, addresses, follows, given_by
from foundry.engines.vllm.release import WRAPPER
from foundry.engines.vllm.start import Start
from foundry.graphs import Found
from foundry.torch.tensors import UnstorableError


class Pieces:
    """Numbers the wrappers in the order in which they capture first, and answers for them. `module` is vLLM's."""

    def __init__(self, own: Pass, module: Any) -> None:
        self._own, self._module = own, module
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []
        self._first: Any = None
        self._shown: list[tuple[Any, Claim]] = []
        """The wrappers of the first batch, with their claims."""
        self._claims: dict[tuple[int, Any], Claim] = {}
        """Those of a batch that could not be given as a whole."""

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Answer for all wrappers during the block."""
        wrapper = self._module.CUDAGraphWrapper
        plain = wrapper.__call__

        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            return self._call(plain, this, args, kwargs)

        wrapper.__call__ = call
        try:
            yield
        finally:
            wrapper.__call__ = plain

    def like_first(self, num_tokens: int) -> Any | None:
        """Describe a batch of another size, None before the first was seen."""
        return None if self._first is None else dataclasses.replace(self._first, num_tokens=num_tokens)

    def give(self, descriptor: Any) -> bool:
        """Give all wrappers their graphs of a batch, without a run of the model; False: it must run."""
        if not self._own.restores or not self._shown or descriptor in (None, self._first):
            return False
        try:
            usable = self._usable(descriptor)
        except (UnstorableError, LookupError, TypeError, ValueError):
            usable = None  # metadata that this adapter did not write
        if usable is None:
            return False
        claims = self._own.claim_usable(keys.PIECES, usable)
        wrappers = [this for this, _ in self._shown]
        if any(claim.found is None for claim in claims):
            pairs = zip(wrappers, claims, strict=True)
            self._claims.update({(id(this), descriptor): claim for this, claim in pairs})
            return False
        for this, claim in zip(wrappers, claims, strict=True):
            this.concrete_cudagraph_entries[descriptor] = self._module.CUDAGraphEntry(
                batch_descriptor=descriptor,
                cudagraph=claim.graph(),
                output=claim.rebuilt(),
                input_addresses=addresses(claim.told, self._own.base),
            )
            self._module.compilation_counter.num_cudagraph_captured += 1
        return True

    def _usable(self, descriptor: Any) -> dict[str, Found] | None:
        """Return the archive's graphs of all pieces by key, if a run of the model would ask for just these."""
        sizes = (self._first.num_tokens, descriptor.num_tokens)
        batch = keys.of_batch(descriptor)
        usable: dict[str, Found] = {}
        given: list[Span] = []
        for this, claim in self._shown:
            key = self._key(this, batch)
            found = self._own.usable(keys.PIECES, key)
            if claim.found is None or found is None:
                return None
            metadata = found[1]
            own = given_by(metadata["outputs"], self._own.base)
            if own is None or not follows(claim.told, metadata["inputs"], given, sizes):
                return None
            usable[key] = found
            given += own
        return usable

    def _call(self, plain: Callable[..., Any], this: Any, args: Any, kwargs: Any) -> Any:
        descriptor = about_to_capture(self._module, this)
        if descriptor is None:
            return plain(this, *args, **kwargs)
        own, runnable = self._own, this.runnable
        kind = keys.name_of(this.runtime_mode)
        batch = keys.of_batch(descriptor)
        key = self._key(this, batch) if kind == keys.PIECES else batch
        begun = self._claims.pop((id(this), descriptor), None)
        claim = own.recheck(begun, (args, kwargs)) if begun else own.claim(kind, key, (args, kwargs))
        if kind == keys.PIECES:
            self._first = self._first or descriptor
            if descriptor == self._first:
                self._shown.append((this, claim))
        if own.restores and claim.found is None and not own.warmed:
            with own.warm_up(f"{kind}/{key}"):
                runnable(*args, **kwargs)
        this.runnable = lambda *given, **named: claim.run(runnable, *given, **named)
        try:
            with torch_seam.expecting(claim):
                return plain(this, *args, **kwargs)
        finally:
            this.runnable = runnable

    def _key(self, this: Any, batch: str) -> str:
        if id(this) not in self._numbers:
            self._numbers[id(this)] = len(self._numbers)
            self._held.append(this)
        return f"{self._numbers[id(this)]}/{batch}"


@contextmanager
def answering(start: Start, own: Pass) -> Iterator[None]:
    """Answer for the pieces of a start's model during the block; they stand in `start.pieces` then."""
    start.pieces = Pieces(own, importlib.import_module(WRAPPER))
    try:
        with start.pieces.patched(), garbage.spared() if own.restores else nullcontext():
            yield
    finally:
        start.pieces = None


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
