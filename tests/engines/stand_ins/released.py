"""Puts the released functions of an engine in place of the stand-ins' own, read from the folder of an unpacked wheel.

What they name that the stand-ins lack is given to them: counters, loggers, the offloader that does nothing.
"""

from __future__ import annotations

import ast
import contextlib
import os
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch

RELEASE = "STAND_IN_RELEASE"


class Counter:
    """Counts in the list that the stand-ins count in."""

    def __init__(self, captured: list[str]) -> None:
        self._captured = captured

    @property
    def num_cudagraph_captured(self) -> int:
        return len(self._captured)

    @num_cudagraph_captured.setter
    def num_cudagraph_captured(self, value: int) -> None:
        self._captured.append("one")


class Group:
    """A group of one rank."""

    def barrier(self) -> None:
        """Wait for nobody."""


def take_over(
    names: dict[str, Any], class_name: str, *functions: str, missing: Callable[[], dict[str, Any]] | None = None
) -> None:
    """Replace methods of a class in a stand-in module, which calls this at its end, if a release is named."""
    release = os.environ.get(RELEASE)
    if release:
        path = Path(release).joinpath(*names["__name__"].split(".")).with_suffix(".py")
        given = {**(missing or _missing)(), **names}
        for name in functions:
            setattr(names[class_name], name, _function(path, class_name, name, given))


def _function(path: Path, class_name: str, name: str, names: dict[str, Any]) -> Any:
    text = path.read_text(encoding="utf-8")
    owner = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == class_name)
    found = next(node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == name)
    first = min([found.lineno, *(one.lineno for one in found.decorator_list)])
    source = textwrap.dedent("\n".join(text.splitlines()[first - 1 : found.end_lineno]))
    exec(compile("from __future__ import annotations\n" + source, str(path), "exec"), names)
    return names[name]


def _missing() -> dict[str, Any]:
    from vllm.compilation.cuda_graph import captured

    nothing = types.SimpleNamespace(sync_prev_onload=lambda: None, join_after_forward=lambda: None)
    torch.profiler = types.SimpleNamespace(record_function=lambda name: contextlib.nullcontext())  # type: ignore[attr-defined]
    return {
        "ExitStack": contextlib.ExitStack,
        "nullcontext": contextlib.nullcontext,
        "patch": lambda *given: contextlib.nullcontext(),
        "logger": mock.MagicMock(),
        "tqdm": lambda descs, **how: descs,
        "is_global_first_rank": lambda: True,
        "get_offloader": lambda: nothing,
        "compilation_counter": Counter(captured),
        "validate_cudagraph_capturing_enabled": lambda: None,
        "set_graph_pool_id": lambda pool: None,
        "current_platform": types.SimpleNamespace(graph_pool_handle=torch.cuda.graph_pool_handle),
        "current_stream": torch.cuda.current_stream,
        "check_ubatch_thresholds": lambda **how: False,
    }
