from __future__ import annotations

from dataclasses import dataclass


@dataclass
class MemoryPoolConfig:
    max_total_num_tokens: int
    max_running_requests: int | None = None
    mem_fraction_static: float | None = None
