"""Whether a run of the model at another size would ask for what the archive has, as the run of the first size shows.

An input of a piece must then lie where the first size's does, and reach no further, or in what an earlier piece of the
same size gives: the memory of graphs, which the archive gives back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foundry.engines.signatures import is_tensor, reach_of

Span = tuple[int, int]
"""First byte and the one behind the last."""


def given_by(outputs: Mapping[str, Any], base: int) -> list[Span] | None:
    """Say which bytes from `base` described outputs lie in; None if some are an input's."""
    spans: list[Span] = []
    for storage in outputs["storages"]:
        if storage["input"] is not None:
            return None
        begin = storage["pointer"] - base
        spans.append((begin, begin + storage["bytes"]))
    return spans


def follows(shown: Any, recorded: Any, given: Sequence[Span], sizes: tuple[int, int]) -> bool:
    """Compare signatures of inputs: `shown` of the first of `sizes`, `recorded` of the second.

    A restore asks this of each input of each graph, so there is a plain loop, and the likely is asked first.
    """
    kind = type(recorded)
    if type(shown) is not kind:
        return False
    if kind is list:
        if is_tensor(recorded):
            # Equality is enough for tensors only: elsewhere it would take True for 1.
            return bool(shown == recorded) or (is_tensor(shown) and _lies(shown, recorded, given))
        if len(shown) != len(recorded):
            return False
        names: Iterable[Any] = range(len(recorded))
    elif kind is dict:
        if shown.keys() != recorded.keys():
            return False
        names = recorded
    else:
        return bool(shown == recorded) or (shown, recorded) == sizes
    for name in names:
        one, other = shown[name], recorded[name]
        if not follows(one, other, given, sizes):
            return False
    return True


def addresses(recorded: Any, base: int) -> list[int]:
    """Give the addresses of those inputs that are tensors themselves and have no name, as vLLM compares them."""
    positional = recorded["items"][0]["items"]
    return [base + value[0] for value in positional if is_tensor(value)]


def _lies(shown: Any, recorded: Any, given: Sequence[Span]) -> bool:
    begin, shape, strides, dtype, device = recorded
    if strides != shown[2] or dtype != shown[3] or device != shown[4] or len(shape) != len(shown[1]):
        return False
    size = reach_of(recorded)
    if begin == shown[0] and size <= reach_of(shown):
        return True
    end = begin + size
    # Mostly it is the piece before that gives it.
    return any(low <= begin and end <= high for low, high in reversed(given))
