"""`with torch.cuda.graph(...)`: where an engine's capture is recorded or answered, for whoever expects one.

Nobody expects the captures of a plain script. Its body cannot be skipped: what else it does is not known here. So it
is captured as always, and one line says so.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Protocol

from foundry import capi
from foundry.capi import Mode
from foundry.engines.protocol import Seam, tell

NAME = "torch"
MODULE = "torch.cuda.graphs"
UNNAMED = "graphs_without_a_key"
"""The total of captures that nobody gave a key."""
HINT = (
    "a graph is captured as always, since the body of `with torch.cuda.graph(...)` may do more than launch kernels; "
    "`graph = foundry.torch.GraphSet(name).capture_or_restore(key, function, inputs)` in its place comes back"
)

ENGINES = ("vllm", "sglang")
"""Packages whose captures are told of by their own adapters."""

_MARK = "_foundry_claim"


class Claim(Protocol):
    """Does something else than torch at a capture."""

    def enter(self, context: Any, plain: Callable[[], Any]) -> Any:
        """Stand in for `__enter__`."""

    def leave(self, context: Any, plain: Callable[[], Any], failed: bool) -> Any:
        """Stand in for `__exit__`."""


class _Expected(threading.local):
    claim: Claim | None = None


_expected = _Expected()


@contextmanager
def expecting(claim: Claim) -> Iterator[None]:
    """Have the first capture of the block in this thread go to the claim."""
    before, _expected.claim = _expected.claim, claim
    try:
        yield
    finally:
        _expected.claim = before


class TorchAdapter:
    """The seam itself, in whichever torch."""

    name = NAME
    versions: tuple[str, ...] = ()
    fields: Mapping[tuple[str, str], tuple[str, ...]] = {}
    seams = (
        Seam(MODULE, "graph.__enter__", ("self",), "a01ca9553db7"),
        Seam(MODULE, "graph.__exit__", ("self", "args"), "1c928e21ceac"),
    )

    @property
    def patches(self) -> Mapping[str, Callable[[ModuleType], None]]:
        """What to do with torch's module."""
        return {MODULE: patch}


def patch(module: ModuleType) -> None:
    """Ask at each capture whether somebody expects it."""
    graph: Any = module.graph
    if hasattr(graph, _MARK):
        return
    plain_enter, plain_exit = graph.__enter__, graph.__exit__
    told = False

    def enter(self: Any) -> Any:
        nonlocal told
        claim, _expected.claim = _expected.claim, None
        if claim is None:
            hook = capi.load()
            if hook.mode() is not Mode.OFF:
                hook.count(UNNAMED)
                if not told and not any(name in sys.modules for name in ENGINES):
                    told = True
                    tell(NAME, HINT)
            return plain_enter(self)
        setattr(self, _MARK, claim)
        return claim.enter(self, lambda: plain_enter(self))

    def leave(self: Any, *args: Any) -> Any:
        claim: Claim | None = getattr(self, _MARK, None)
        if claim is None:
            return plain_exit(self, *args)
        setattr(self, _MARK, None)
        return claim.leave(self, lambda: plain_exit(self, *args), bool(args and args[0] is not None))

    setattr(graph, _MARK, None)
    graph.__enter__, graph.__exit__ = enter, leave
