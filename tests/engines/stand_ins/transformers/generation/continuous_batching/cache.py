from __future__ import annotations

from typing import Any

import torch


class PagedAttentionMemoryHandler:
    def __init__(self, config: Any, continuous_batching_config: Any, free_blocks: int) -> None:
        self.config, self.cb_config, self.free_blocks = config, continuous_batching_config, free_blocks

    def infer_max_batch_tokens_and_num_blocks(self) -> tuple[int, int]:
        return self.cb_config.max_batch_tokens or 8, self.free_blocks

    def compute_memory_footprint(self, max_batch_tokens: int, num_blocks: int) -> int:
        return num_blocks << 20


class PagedAttentionCache:
    def __init__(self, config: Any, continuous_batching_config: Any, free_blocks: int) -> None:
        handler = PagedAttentionMemoryHandler(config, continuous_batching_config, free_blocks)
        self.max_batch_tokens, self.num_blocks = handler.infer_max_batch_tokens_and_num_blocks()
        self.key_cache = torch.empty(self.num_blocks * 16)
