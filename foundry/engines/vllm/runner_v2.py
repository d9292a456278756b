"""The V2 runner's capture loop, `CudaGraphManager.capture`: its warm-ups and its full graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from foundry.engines import torch_seam
from foundry.engines.passes import Pass
from foundry.engines.vllm import keys
from foundry.engines.vllm.pieces import answering
from foundry.engines.vllm.start import Start, of

KEPT = ("hidden_states", "aux_hidden_states", "intermediate_tensors")
"""What the first pass leaves in the manager, and all full graphs write into."""


def capture_model(plain: Callable[..., int], runner: Any) -> int:
    """Stand in for `GPUModelRunner.capture_model`: have the ground laid before the manager's loop begins."""
    start = of(runner)
    if start is None or runner.cudagraph_manager is None or not runner.cudagraph_manager.needs_capture():
        return plain(runner)
    own = start.lay_ground(runner)
    if own is None:
        return plain(runner)
    runner.cudagraph_manager._foundry_start = start
    try:
        with answering(start, own):
            return plain(runner)
    finally:
        del runner.cudagraph_manager._foundry_start


def capture(plain: Callable[..., Any], manager: Any, create: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Stand in for `CudaGraphManager.capture`."""
    start = getattr(manager, "_foundry_start", None)
    if start is None or start.current is None:
        return plain(manager, create, *args, **kwargs)
    loop = _Loop(start, start.current, manager)
    with ExitStack() as claims:
        loop.claims = claims
        return plain(manager, loop.wrap(create), *args, **kwargs)


class _Loop:
    """Stands between the loop and the forward functions that it makes, two for each size."""

    claims: ExitStack

    def __init__(self, start: Start, own: Pass, manager: Any) -> None:
        self._start, self._own, self._manager = start, own, manager
        self._none: Any = None

    def wrap(self, create: Callable[..., Any]) -> Callable[..., Any]:
        """Make forward functions that warm up apart, or not at all, and are captured under their name.

        Inputs of pieces, which have no metadata of attention, are prepared only where the model runs.
        """

        def made(desc: Any, warmup: bool) -> Callable[[Any], Any]:
            if desc.cg_mode.name != "FULL":
                prepared = functools.cache(lambda: create(desc, warmup=warmup))
                return lambda mode: self._piecewise(desc, lambda mode: prepared()(mode), mode)
            forward = create(desc, warmup=warmup)
            if warmup:
                return lambda mode: self._warm_up(desc, forward, mode)
            return self._captured(desc, forward)

        return made

    def _piecewise(self, desc: Any, forward: Callable[[Any], Any], mode: Any) -> None:
        pieces = self._start.pieces
        if mode.name == "NONE":
            self._warm_up(desc, forward, mode)
        elif pieces is None or not pieces.give(pieces.like_first(desc.num_tokens)):
            forward(mode)

    def _captured(self, desc: Any, forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
        own = self._own
        written = [getattr(self._manager, name, None) for name in KEPT[:2]]
        claim = own.claim(keys.FULL, keys.of_execution(desc), written)
        if own.restores and claim.found is None and not own.warmed:
            self._run_apart(desc, forward, self._none)
        self.claims.close()
        self.claims.enter_context(torch_seam.expecting(claim))
        return lambda mode: self._keep(claim.run(lambda: self._kept_by(forward, mode)))

    def _kept_by(self, forward: Callable[[Any], Any], mode: Any) -> dict[str, Any]:
        forward(mode)
        return {name: getattr(self._manager, name, None) for name in KEPT}

    def _keep(self, kept: dict[str, Any]) -> None:
        """Leave in the manager what a body would have left that did not run: the first one makes it."""
        for name, value in kept.items():
            if value is not None and self._lacks(name):
                setattr(self._manager, name, value)

    def _warm_up(self, desc: Any, forward: Callable[[Any], Any], mode: Any) -> None:
        self._none = mode
        if self._own.restores and self._own.holds(keys.name_of(desc.cg_mode), _first_key(desc)):
            self._own.skip_warm_up()
        else:
            self._run_apart(desc, forward, mode)

    def _run_apart(self, desc: Any, forward: Callable[[Any], Any], mode: Any) -> None:
        before = {name: getattr(self._manager, name) for name in KEPT if self._lacks(name)}
        with self._own.warm_up(keys.of_execution(desc)):
            forward(mode)
        # Not the warm-up's memory, which a restore does not have, but the graphs': the next body makes it anew.
        for name, value in before.items():
            setattr(self._manager, name, value)

    def _lacks(self, name: str) -> bool:
        value = getattr(self._manager, name, self)
        return value is None or (isinstance(value, list) and not value)


def _first_key(desc: Any) -> str:
    """Name the graph that tells whether the archive has this size at all."""
    if desc.cg_mode.name == "FULL":
        return keys.of_execution(desc)
    return f"0/{desc.num_tokens} tokens"
