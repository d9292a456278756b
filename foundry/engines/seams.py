"""Holds the seams of an adapter against the sources of a release, without importing them.

`python -m foundry.engines.seams FOLDER` reads an unpacked wheel, and fails if a seam has moved. The digest is of the
function's lines without docstring, comments, blank lines and indentation, so that it does not depend on this Python.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from foundry.engines.protocol import Adapter, Seam

Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults(adapter: Adapter, folder: Path) -> list[str]:
    """Say what has moved, one line a seam; empty if all are as the adapter expects."""
    found = [f"{seam.module}.{seam.name}: {fault}" for seam in adapter.seams if (fault := fault_of(seam, folder))]
    for (module, owner), names in adapter.fields.items():
        there = fields_of(module, owner, folder)
        found += [f"{module}.{owner}: has no {name}" for name in names if name not in there]
    return found


def fault_of(seam: Seam, folder: Path) -> str | None:
    """Say how a seam differs in these sources, or None."""
    text = _source(seam.module, folder)
    if text is None:
        return "no such module"
    function = _function(ast.parse(text), seam.name.split("."))
    if function is None:
        return "no such function"
    parameters = parameters_of(function)
    if parameters != seam.parameters:
        return f"takes ({', '.join(parameters)}), not ({', '.join(seam.parameters)})"
    found = digest_of(function, text)
    return None if found == seam.digest else f"its source has changed: digest {found}, not {seam.digest}"


def fields_of(module: str, owner: str, folder: Path) -> set[str]:
    """Name what a class of these sources declares: annotated names and functions."""
    for node in ast.parse(_source(module, folder) or "").body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            declared = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
            names = {one.id for one in declared if isinstance(one, ast.Name)}
            return names | {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    return set()


def _source(module: str, folder: Path) -> str | None:
    path = folder.joinpath(*module.split(".")).with_suffix(".py")
    if not path.is_file():
        path = path.with_suffix("") / "__init__.py"
    return path.read_text(encoding="utf-8") if path.is_file() else None


def parameters_of(function: Function) -> tuple[str, ...]:
    """List the names of the parameters in the order of `inspect.signature`."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    names += [given.vararg.arg] if given.vararg else []
    names += [one.arg for one in given.kwonlyargs]
    names += [given.kwarg.arg] if given.kwarg else []
    return tuple(names)


def digest_of(function: Function, text: str) -> str:
    """Digest what a function does, by its lines."""
    lines = text.splitlines()[function.lineno - 1 : function.end_lineno]
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        begin, end = first.lineno - function.lineno, (first.end_lineno or first.lineno) - function.lineno
        del lines[begin : end + 1]
    told = [line.rstrip() for line in textwrap.dedent("\n".join(lines)).splitlines()]
    kept = [line for line in told if line and not line.lstrip().startswith("#")]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()[:12]


def _function(node: ast.AST, names: Sequence[str]) -> Function | None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and child.name == names[0]:
            if len(names) > 1:
                return _function(child, names[1:])
            return None if isinstance(child, ast.ClassDef) else child
    return None


def main() -> int:
    """Check each adapter whose package lies in the folder that is named."""
    from foundry.engines.loader import adapters

    if len(sys.argv) != 2:
        print("usage: python -m foundry.engines.seams FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    present = [one for one in adapters() if (folder / one.name).is_dir()]
    found = [line for one in present for line in faults(one, folder)]
    for one in present:
        print(f"{one.name}: {len(one.seams)} seams")
    for line in found:
        print(f"  {line}")
    return 1 if found or not present else 0


if __name__ == "__main__":
    sys.exit(main())
