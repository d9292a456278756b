from __future__ import annotations

import types
from typing import Any

from sglang.srt.model_executor.pool_configurator import MemoryPoolConfig


class KVCacheConfigurator:
    def __init__(self, server_args: Any, model_config: Any, free_tokens: int) -> None:
        self.server_args, self.model_config, self.free_tokens = server_args, model_config, free_tokens
        self.is_draft_worker = self.post_capture_kv_active = False
        self.ps = types.SimpleNamespace(tp_size=1, pp_size=1, dp_size=1, moe_ep_size=1, dcp_size=1)

    def configure(self, *, pre_model_load_memory: int) -> MemoryPoolConfig:
        return self._resolve_memory_pool_config(pre_model_load_memory)

    def _resolve_memory_pool_config(self, pre_model_load_memory: int) -> MemoryPoolConfig:
        return MemoryPoolConfig(self.free_tokens, 8, self.server_args.mem_fraction_static)
