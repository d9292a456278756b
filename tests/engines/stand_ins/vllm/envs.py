from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any


def use_aot_compile() -> bool:
    return os.environ.get("VLLM_USE_AOT_COMPILE", "1") == "1"


def use_mega_aot_artifact() -> bool:
    return os.environ.get("VLLM_USE_MEGA_AOT_ARTIFACT", "0") == "1"


def cache_root() -> str:
    return os.environ.get("VLLM_CACHE_ROOT", os.environ["XDG_CACHE_HOME"] + "/vllm")


environment_variables: dict[str, Callable[[], Any]] = {
    "VLLM_CACHE_ROOT": cache_root,
    "VLLM_USE_AOT_COMPILE": use_aot_compile,
    "VLLM_USE_MEGA_AOT_ARTIFACT": use_mega_aot_artifact,
    "VLLM_USE_STANDALONE_COMPILE": lambda: os.environ.get("VLLM_USE_STANDALONE_COMPILE", "1") == "1",
    "VLLM_DISABLE_COMPILE_CACHE": lambda: os.environ.get("VLLM_DISABLE_COMPILE_CACHE", "0") == "1",
}


def __getattr__(name: str) -> Any:
    if name in environment_variables:
        return environment_variables[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enable_envs_cache() -> None:
    global __getattr__
    __getattr__ = functools.cache(__getattr__)
    for key in environment_variables:
        __getattr__(key)
