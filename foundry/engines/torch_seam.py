"""`with torch.cuda.graph(...)`: where an engine's capture is recorded or answered, for whoever expects one.

Nobody expects the captures of a plain script, or those that torch begins for `make_graphed_callables` and
`torch.compile`. Their bodies cannot be skipped: what else they do is not known here. So they are captured as always,
one line says so, and they are counted, for the report.
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
_INSTEAD = "`graph = foundry.torch.GraphSet(name).capture_or_restore(key, function, inputs)`"
SCRIPT = (
    "graphs_of_scripts",
    "a graph is captured as always, since the body of `with torch.cuda.graph(...)` may do more than launch kernels; "
    f"{_INSTEAD} in its place comes back",
)
"""Counter and line of what is captured for nobody else."""
OF_TORCH = (
    (
        (MODULE,),
        "graphs_of_make_graphed_callables",
        "graphs of `torch.cuda.make_graphed_callables` are captured as always, since autograd holds them; for a model "
        f"that is not trained {_INSTEAD} in its place comes back",
    ),
    (
        ("torch._inductor", "torch._dynamo"),
        "graphs_of_torch_compile",
        'graphs of `torch.compile(mode="reduce-overhead")` are captured as always, since what they hold is found out '
        f"call by call; `torch.compile` without that mode, and its function in {_INSTEAD}, comes back",
    ),
)
"""Modules of torch that capture by themselves, or packages with such, and the same for these."""

ENGINES = ("vllm", "sglang", "transformers")
"""Packages whose adapters tell why captures of theirs are done as always."""
INFORMED = ("vllm", "sglang", "foundry.torch")
"""Modules in whose processes nobody is told of others: those serve, and users of graph sets know."""

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
    told: set[str] = set()

    def enter(self: Any) -> Any:
        claim, _expected.claim = _expected.claim, None
        if claim is None:
            hook = capi.load()
            if hook.mode() is not Mode.OFF:
                hook.count(UNNAMED)
                asker = _asker()
                if asker.partition(".")[0] not in ENGINES:
                    counter, hint = _kind(asker)
                    hook.count(counter)
                    if counter not in told and not any(name in sys.modules for name in INFORMED):
                        told.add(counter)
                        tell(NAME, hint)
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


def _kind(asker: str) -> tuple[str, str]:
    """Give counter and line for the captures of a module."""
    for modules, counter, hint in OF_TORCH:
        if any(asker == module or asker.startswith(f"{module}.") for module in modules):
            return counter, hint
    return SCRIPT


def _asker() -> str:
    """Name the module whose `with` statement begins the capture that this is called in, two calls further in."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "contextlib":
        frame = frame.f_back
    return str(frame.f_globals.get("__name__"))
