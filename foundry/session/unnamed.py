"""Why graphs of torch are captured in a restore as always: adapters count them by who began the capture."""

from __future__ import annotations

from collections.abc import Mapping

REASONS = {
    "graphs_of_scripts": "the body of `with torch.cuda.graph(...)` may do more than launch kernels",
    "graphs_of_make_graphed_callables": "autograd holds the graphs of `make_graphed_callables`",
    "graphs_of_torch_compile": "what graphs of `torch.compile` hold is found out call by call",
}
"""Totals of the program's side, and what the report says of them."""


def captured_as_always(counters: Mapping[str, object]) -> list[dict[str, object]]:
    """Say of each kind that came up how many there were, and why none of them could come from an archive."""
    return [{"graphs": counters[name], "reason": reason} for name, reason in REASONS.items() if counters.get(name)]
