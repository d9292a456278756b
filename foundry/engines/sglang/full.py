"""`FullCudaGraphBackend`: one graph for each batch size of decode, after two warm-ups."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from foundry.engines import torch_seam
from foundry.engines.passes import Claim, Pass
from foundry.engines.protocol import tell
from foundry.engines.sglang import values
from foundry.engines.sglang.start import ENGINE, current_pass
from foundry.torch.tensors import UnstorableError

SET = "decode"
WARM_UPS = 2
"""How often the backends run a shape before they capture it."""


def capture_one(
    plain: Callable[..., Any],
    backend: Any,
    shape_key: Any,
    forward_fn: Callable[[], Any],
    capture_inputs: Any = None,
    post_warmup_hook: Any = None,
) -> Any:
    """Stand in for `FullCudaGraphBackend.capture_one`."""
    own = current_pass()
    inputs = inputs_or_none(forward_fn) if own is not None else None
    if own is None or inputs is None:
        return plain(backend, shape_key, forward_fn, capture_inputs, post_warmup_hook)
    with ExitStack() as claims:
        shape = _Shape(own, values.key_of(shape_key), forward_fn, inputs, claims)
        return plain(backend, shape_key, shape, capture_inputs, post_warmup_hook)


def inputs_or_none(forward_fn: Callable[[], Any]) -> dict[str, Any] | None:
    """Give the inputs of a forward function, None, with a line that says so, where it is not as expected."""
    try:
        return values.inputs_of(forward_fn)
    except UnstorableError as error:
        tell(ENGINE, f"graphs are captured as always: {error}")
        return None


class _Shape:
    """The forward function of one shape, as the backend calls it: twice to warm up, and once to be captured."""

    def __init__(
        self, own: Pass, key: str, forward: Callable[[], Any], inputs: dict[str, Any], claims: ExitStack
    ) -> None:
        self._own, self._key, self._forward, self._inputs, self._claims = own, key, forward, inputs, claims
        self._held = own.holds(SET, key)
        self._claim: Claim | None = None
        self._calls = 0

    def __call__(self) -> Any:
        self._calls += 1
        if self._claim is not None:
            return self._captured(self._claim)
        if self._held:
            self._own.skip_warm_up()
            output = None
        else:
            output = self._warm_up()
        if self._calls == WARM_UPS:
            self._claim = self._own.claim(SET, self._key, self._inputs)
            if self._own.restores and self._claim.found is None and not self._own.warmed:
                for _ in range(WARM_UPS):
                    self._warm_up()
            self._claims.enter_context(torch_seam.expecting(self._claim))
        return output

    def _warm_up(self) -> Any:
        with self._own.warm_up(f"{SET}/{self._key}"):
            return self._forward()

    def _captured(self, claim: Claim) -> Any:
        made: list[Any] = []

        def run() -> Any:
            made.append(self._forward())
            return values.flat(made[0])

        given = claim.run(run)
        return made[0] if made else values.unflat(given)
