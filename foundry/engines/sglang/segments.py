"""`BreakableCudaGraphBackend`: a shape of prefill is a row of graphs, with attention run eagerly between them.

A restore runs nothing of the body but once, for its first shape: it has the graphs from the archive, and makes the
calls between them anew from what was noted of their arguments. Those are tensors and constants only, and the functions
are known by name.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from foundry import capi, graphs
from foundry.engines.passes import Claim, Pass
from foundry.engines.sglang import values
from foundry.engines.sglang.full import WARM_UPS, inputs_or_none
from foundry.engines.sglang.start import current, current_pass
from foundry.torch import memory
from foundry.torch.graph import launcher
from foundry.torch.tensors import UnstorableError, describe, dtype_of, rebuild

SET = "prefill"
BREAKS = {"attention": ("sglang.srt.layers.radix_attention", "unified_attention_with_output")}
"""Functions that may stand between graphs, by the names that an archive has for them. They return nothing."""
MOST_SEGMENTS = 1 << 16
_REPLAY_CELLS = ("captured_args", "captured_inner", "captured_kwargs", "captured_output")


class Segment:
    """A restored graph in the place of torch's."""

    def __init__(self, replay: Callable[[], None]) -> None:
        self.replay = replay


class Shape:
    """The forward function of one shape, as the backend calls it: twice to warm up, and once to be captured."""

    def __init__(self, own: Pass, key: str, forward: Callable[[], Any], inputs: dict[str, Any]) -> None:
        self._own, self._key, self._forward, self._inputs = own, key, forward, inputs
        self._stored = self._held()
        self.found: list[Claim] = []
        """The claims for all graphs of the shape, if the archive has all."""
        self._calls = 0
        self._number = 0
        self._claim: Claim | None = None
        self._open = ExitStack()
        self._label: capi.Label | None = None
        self._output: Any = None
        self._noted: Any = None
        self._asked: dict[int, Claim] = {}

    def __call__(self) -> Any:
        """Run the body, or give what it gave."""
        self._calls += 1
        if self._calls > WARM_UPS:
            self._output = self._rebuilt() if self.found else self._forward()
            return self._output
        start = current()
        runs = not self._stored or (start is not None and start.is_first_shape())
        return self._warm_up() if runs else self._stand_in()

    def _warm_up(self) -> Any:
        with self._own.warm_up(f"{SET}/{self._key}"):
            return self._forward()

    def _held(self) -> list[dict[str, Any]]:
        """Give the metadata of all graphs of the shape; none if one is not there, or was captured on other ground."""
        found: list[dict[str, Any]] = []
        while len(found) < MOST_SEGMENTS and (usable := self._own.usable(SET, f"{self._key}/{len(found)}")) is not None:
            found.append(usable[1])
            if found[-1]["outputs"] is not None:
                return found
        return []

    def _stand_in(self) -> Any:
        """Give something of the shape of what a warm-up gives, in memory that goes with warm-ups."""
        self._own.skip_warm_up()
        tree = self._stored[-1]["outputs"]["tree"]["tuple"][0]
        with memory.scratch(self._own.hook, f"sglang/{SET} stand-in", self._own.device):
            return _empty(tree, self._own.device)

    def ask(self) -> None:
        """Claim all graphs of the row, where it would be captured: it is given whole, or not at all."""
        own = self._own
        if not own.restores:
            return
        claims = [own.claim(SET, f"{self._key}/{number}", self._inputs) for number in range(len(self._stored) or 1)]
        if self._stored and all(claim.found is not None for claim in claims):
            self.found = claims
            return
        for claim in claims:
            if claim.found is not None:
                reason = "another graph of its row cannot be restored"
                own.hook.give_up(claim.found[0], reason)
                claim.answers.give_up(claim.key, reason)
            claim.found = None
        self._asked = dict(enumerate(claims))
        if not own.warmed:
            for _ in range(WARM_UPS):
                self._warm_up()

    def begin(self, plain: Callable[[], Any]) -> None:
        """Begin a graph of the row under its name."""
        self._open.close()
        if self._own.stores:
            again = self._asked.pop(self._number, None)
            self._claim = again or self._own.claim(SET, f"{self._key}/{self._number}", self._inputs)
            self._label = self._open.enter_context(
                capi.labelled(self._own.hook, self._claim.answers.name, self._claim.key)
            )
        plain()

    def end(self, plain: Callable[[], Any], made: Any, *, last: bool) -> None:
        """End a graph of the row, and describe it. What runs before the next one is kept apart, as warm-ups are."""
        own = self._own
        with self._open:
            plain()
            own.hook.count(graphs.CAPTURES_RUN)
            if self._label is not None and self._claim is not None:
                if last:
                    self._describe(made, self._claim)
                metadata = own.metadata(self._claim)
                if "refused" in metadata:
                    self._claim.answers.give_up(self._claim.key, metadata["refused"])
                self._label.metadata = json.dumps(metadata)
        self._number += 1
        self._label = self._claim = None
        if not last and own.stores:
            self._open.enter_context(memory.scratch(own.hook, f"sglang/{SET} break", own.device))

    def close(self) -> None:
        """Leave what a failed capture left open."""
        self._open.close()

    def _describe(self, made: Any, claim: Claim) -> None:
        """Note the output and the calls between the graphs with the last graph of the row."""
        try:
            breaks = [_described(function) for function in made._break_fns]
            claim.outputs = describe((self._output, breaks), self._own.device, self._inputs)
        except UnstorableError as error:
            claim.refused = str(error)

    def give(self, made: Any) -> None:
        """Put the archive's graphs and the calls between them into the engine's own container."""
        own = self._own
        for claim in self.found:
            if claim.found is not None:
                made._segments.append(Segment(launcher(own.hook, claim.found[0], own.device, own.state, 0)))
                own.given()
        for name, args, kwargs in self._told()[1]:
            module, function = BREAKS[name]
            made._break_fns.append(
                functools.partial(getattr(importlib.import_module(module), function), *args, **kwargs)
            )

    def _rebuilt(self) -> Any:
        return self._told()[0]

    def _told(self) -> Any:
        found = self.found[-1].found
        if self._noted is None and found is not None:
            self._noted = rebuild(found[1]["outputs"], self._own.device, self._inputs)
        return self._noted


_active: list[Shape] = []


def capture_one(
    plain: Callable[..., Any],
    backend: Any,
    shape_key: Any,
    forward_fn: Callable[[], Any],
    capture_inputs: Any = None,
    post_warmup_hook: Any = None,
) -> Any:
    """Stand in for `BreakableCudaGraphBackend.capture_one`."""
    own = current_pass()
    inputs = inputs_or_none(forward_fn) if own is not None else None
    if own is None or inputs is None:
        return plain(backend, shape_key, forward_fn, capture_inputs, post_warmup_hook)
    shape = Shape(own, values.key_of(shape_key), forward_fn, inputs)
    _active.append(shape)
    copy = backend._copy_output_to_buffer
    backend._copy_output_to_buffer = lambda *given: None if shape.found else copy(*given)
    try:
        return plain(backend, shape_key, shape, capture_inputs, post_warmup_hook)
    finally:
        del backend._copy_output_to_buffer
        _active.remove(shape)
        shape.close()


def enter(plain: Callable[..., Any], context: Any) -> Any:
    """Stand in for `BreakableCUDAGraphCapture.__enter__`: where the archive has all, nothing is captured."""
    if _active:
        _active[-1].ask()
        if _active[-1].found:
            return context
    return plain(context)


def leave(plain: Callable[..., Any], context: Any, *args: Any) -> Any:
    """Stand in for `BreakableCUDAGraphCapture.__exit__`."""
    if _active and _active[-1].found:
        if not (args and args[0] is not None):
            _active[-1].give(context.cuda_graph)
        return False
    context._foundry_last = True
    return plain(context, *args)


def begin_segment(plain: Callable[..., Any], context: Any) -> None:
    """Stand in for `BreakableCUDAGraphCapture._begin_new_segment`."""
    if _active:
        _active[-1].begin(lambda: plain(context))
    else:
        plain(context)


def end_segment(plain: Callable[..., Any], context: Any) -> None:
    """Stand in for `BreakableCUDAGraphCapture._end_current_segment`."""
    if _active:
        last = getattr(context, "_foundry_last", False)
        _active[-1].end(lambda: plain(context), context.cuda_graph, last=last)
    else:
        plain(context)


def _described(function: Any) -> list[Any]:
    """Take a call between graphs apart: the name of its function, and its arguments."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    if names != _REPLAY_CELLS:
        raise UnstorableError("a break between graphs is not as expected")
    cells = dict(zip(names, (cell.cell_contents for cell in function.__closure__), strict=True))
    inner = cells["captured_inner"]
    for name, (module, attribute) in BREAKS.items():
        if inner is getattr(importlib.import_module(module), attribute, None):
            if cells["captured_output"] is not None:
                raise UnstorableError("a break between graphs gives something back")
            return [name, list(cells["captured_args"]), dict(cells["captured_kwargs"])]
    told = getattr(inner, "__qualname__", None) or getattr(inner, "__name__", type(inner).__qualname__)
    raise UnstorableError(f"a break between graphs at {told}")


def _empty(tree: Any, device: torch.device) -> Any:
    """Make tensors of the shapes of a description."""
    if "value" in tree:
        return tree["value"]
    for kind, made in (("tuple", tuple), ("list", list)):
        if kind in tree:
            return made(_empty(item, device) for item in tree[kind])
    if "dict" in tree:
        return {name: _empty(item, device) for name, item in tree["dict"]}
    return torch.empty(tree["shape"], dtype=dtype_of(tree["dtype"]), device=device)
