"""Imports point one way: cli -> session -> parts -> model. Read off the sources, so no import is executed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BASE = {"model", "findings", "errors", "env"}
PROGRAM_SIDE = {"capi", "graphs", "witness", "errors", "env"}

# room -> the other rooms of foundry that it may import; what is missing here may import nothing.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "env": set(),
    "findings": set(),
    "model": {"findings", "errors"},
    "spool": BASE,
    "binary": set(),
    "machine": BASE | {"binary"},
    "pack": BASE | {"spool", "binary", "machine"},
    "archive": BASE,
    "image": BASE | {"binary"},
    "caches": BASE,
    "prefetch": BASE,
    "diff": BASE | {"archive", "describe", "machine"},
    "proof": BASE | {"diff", "pack", "machine"},
    "verify": BASE | {"archive", "binary", "machine"},
    "page": BASE | {"archive", "describe"},
    "compat": BASE | {"archive"},
    "describe": BASE,
    "native": {"errors", "env"},
    "launch": BASE | {"native"},
    "store": BASE | {"archive"},
    "session": BASE
    | {
        "launch",
        "store",
        "spool",
        "binary",
        "machine",
        "pack",
        "archive",
        "image",
        "caches",
        "prefetch",
        "diff",
        "proof",
        "verify",
        "compat",
        "native",
        "keyed",
    },
    "capi": {"errors", "env"},
    "witness": {"errors", "env"},
    "graphs": PROGRAM_SIDE,
    "keyed": PROGRAM_SIDE | {"graphs"},
    "selftest": PROGRAM_SIDE,
    "torch": PROGRAM_SIDE,
    "engines": PROGRAM_SIDE | {"torch"},
}
PURE = {"describe", "binary", "machine", "pack", "archive", "image", "diff", "proof", "verify", "model", "page"}
IMPURE_FOLDERS = {ROOT / "foundry" / "verify" / "device"}
IMPURE_MODULES = {"subprocess", "time", "socket", "random", "datetime"}


def imports_of(path: Path) -> set[str]:
    """Every module that a file names in an import, wherever it stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "foundry").parts[0].removesuffix(".py")


def library_files() -> list[Path]:
    return [
        path
        for path in sorted((ROOT / "foundry").rglob("*.py"))
        if "native" not in path.parts and not path.is_relative_to(ROOT / "foundry" / "cli")
    ]


@pytest.mark.parametrize("path", library_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_what_lies_below_it(path: Path) -> None:
    room = room_of(path)
    if room in {"__init__", "__main__"}:
        return
    assert room in ALLOWED, f"{room} is a new room: say in this test what it may import"
    used = {name.split(".")[1] for name in imports_of(path) if name.startswith("foundry.") and name.count(".") >= 1}
    assert used - ALLOWED[room] - {room} == set()


@pytest.mark.parametrize("path", library_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_never_imports_typer_or_rich(path: Path) -> None:
    top = {name.split(".")[0] for name in imports_of(path)}
    assert not top & {"typer", "rich", "cli"}


@pytest.mark.parametrize(
    "path",
    [path for path in library_files() if room_of(path) in PURE and path.parent not in IMPURE_FOLDERS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_middle_is_pure(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports_of(path)} & IMPURE_MODULES
    assert "print(" not in path.read_text(encoding="utf-8")
    assert "os.environ" not in path.read_text(encoding="utf-8")


def test_nothing_imports_the_cli_by_its_folder_name() -> None:
    for path in (ROOT / "cli").rglob("*.py"):
        assert not any(name == "cli" or name.startswith("cli.") for name in imports_of(path)), path


def test_only_main_exits() -> None:
    for path in (ROOT / "cli").rglob("*.py"):
        if path.name != "main.py":
            assert "sys.exit(" not in path.read_text(encoding="utf-8"), path
