"""The part of `foundry.torch.spans` that touches memory, on the cells of `fake_torch`.

A span holds the cells whose addresses lie in it. Filling leaves one number in its first cell.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

Cells = dict[int, Any]
POISON = -91


def install(torch: Any, spans: types.ModuleType) -> None:
    """Replace the functions that need a real torch."""

    def cells(span: Any) -> Cells:
        return {place: value for place, value in torch.cells.items() if 0 <= place - span.pointer < span.size}

    def put(span: Any, device: Any, saved: Cells) -> None:
        for place in cells(span):
            del torch.cells[place]
        torch.cells.update(saved)

    def filling(span: Any, chosen: Any) -> Cells:
        return {span.pointer: chosen.seed % 1_000_003 + int(chosen.high)}

    def changes(span: Any, device: Any, expected: Any) -> Any:
        wanted = filling(span, expected) if isinstance(expected, spans.Fill) else expected
        found = cells(span)
        if found == wanted:
            return None
        return spans.Change(len(found.items() ^ wanted.items()), repr(sorted(found.items())))

    def host_bytes(tensor: Any) -> bytes:
        value = tensor if isinstance(tensor, dict) else torch.cells.get(tensor.data_ptr())
        return repr(value).encode().ljust(64)

    def write(tensor: Any, value: Any) -> bool:
        before, after = torch.cells.get(tensor.data_ptr()), torch.cells.get(value.data_ptr())
        torch.cells[tensor.data_ptr()] = after
        return bool(before != after)

    def save(span: Any, device: Any) -> Cells:
        torch.take(span.size)
        return cells(span)

    functions: dict[str, Callable[..., Any]] = {
        "room": lambda device: 1 << 40,
        "save": save,
        "put": put,
        "poison": lambda span, device: put(span, device, {span.pointer: POISON}),
        "bounds": lambda span, device: (0.0, 1.0),
        "fill": lambda span, device, chosen: put(span, device, filling(span, chosen)),
        "changes": changes,
        "sample": lambda span, device: repr(sorted(cells(span).items())).encode(),
        "host_bytes": host_bytes,
        "write": write,
    }
    for name, function in functions.items():
        assert hasattr(spans, name), name
        setattr(spans, name, function)
