from __future__ import annotations

import os
import types
from typing import Any


def is_workspace_manager_initialized() -> bool:
    return "STAND_IN_WORKSPACE" in os.environ


def current_workspace_manager() -> Any:
    if os.environ["STAND_IN_WORKSPACE"] == "broken":
        return None
    one = types.SimpleNamespace(numel=lambda: 1024, element_size=lambda: 1)
    return types.SimpleNamespace(_current_workspaces=[one, None])
