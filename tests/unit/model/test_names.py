"""The names of the model, which are imported when they are first asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from foundry import model


def test_each_is_there_and_is_that_of_its_module() -> None:
    """What type checkers are told of a name's module, and what is imported, are two lists."""
    source = ast.parse(Path(model.__file__).read_text(encoding="utf-8"))
    told = {
        alias.name: node.module
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("foundry.")
        for alias in node.names
    }
    assert sorted(told) == sorted(model.__all__)
    for name, module in told.items():
        value = getattr(model, name)
        assert value is getattr(sys.modules[str(module)], name), name


def test_others_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = model.Nothing  # type: ignore[attr-defined]


def test_files_cost_no_numpy() -> None:
    code = "import sys; from foundry.model import File, LibraryPlace, NONE; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
