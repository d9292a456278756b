from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class LogitsProcessorOutput:
    next_token_logits: Any
    hidden_states: Any = None
    customized_info: Any = None
