"""Whether a run of the model at another size would ask for what the archive has, as the run of the first size shows.

An input of a piece must then lie where the first size's does, and reach no further, or in what an earlier piece of the
same size gives: the memory of graphs, which the archive gives back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foundry.engines.signatures import is_tensor, reach_of

Span = tuple[int, int]
"""First byte and the one behind the last."""


def given_by(outputs: Mapping[str, Any], base: int) -> list[Span] | None:
    """Say which bytes from `base` described outputs lie in; None if some are an input's."""
    storages = outputs["storages"]
    if any(storage["input"] is not None for storage in storages):
        return None
    return [(storage["pointer"] - base, storage["pointer"] - base + storage["bytes"]) for storage in storages]


def follows(shown: Any, recorded: Any, given: Sequence[Span], sizes: tuple[int, int]) -> bool:
    """Compare signatures of inputs: `shown` of the first of `sizes`, `recorded` of the second."""
    if is_tensor(recorded):
        return is_tensor(shown) and _lies(shown, recorded, given)
    if type(shown) is not type(recorded):
        return False
    if isinstance(recorded, dict) and shown.keys() == recorded.keys():
        return all(follows(shown[name], recorded[name], given, sizes) for name in recorded)
    if isinstance(recorded, list) and len(shown) == len(recorded):
        return all(follows(one, other, given, sizes) for one, other in zip(shown, recorded, strict=True))
    return bool(shown == recorded) or (shown, recorded) == sizes


def addresses(recorded: Any, base: int) -> list[int]:
    """Give the addresses of those inputs that are tensors themselves and have no name, as vLLM compares them."""
    positional = recorded["items"][0]["items"]
    return [base + value[0] for value in positional if is_tensor(value)]


def _lies(shown: Any, recorded: Any, given: Sequence[Span]) -> bool:
    if shown[2:] != recorded[2:] or len(shown[1]) != len(recorded[1]):
        return False
    begin, size = recorded[0], reach_of(recorded)
    if begin == shown[0] and size <= reach_of(shown):
        return True
    return any(low <= begin and begin + size <= high for low, high in given)
