from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ShapeKey:
    size: int
    stream_idx: int | None = None
    variant_label: str | None = None
