"""What a command finds around it, against what was noted of a capture."""

from __future__ import annotations

import sys
from pathlib import Path

from helpers.native_build import embed_kernels

from foundry.archive.outlines import Outline
from foundry.compat import codes
from foundry.compat.items import Item, Level
from foundry.launch.executable import Executable
from foundry.session.surroundings import NOTED, Surroundings, note, noted

FATBIN = Path(__file__).parents[2] / "data" / "fatbins" / "size.fatbin"
BUILD_ID, OTHER = "01" * 20, "02" * 20


OUTLINE = Outline("python-0", {}, frozenset(), frozenset({("libkernels.so", BUILD_ID)}))
"""A process with a kernel of a library in its graphs."""


def library(folder: Path, build_id: str) -> Path:
    folder.mkdir()
    return embed_kernels(folder / "libkernels.so", FATBIN, build_id)


def compared(folder: Path, *search: Path) -> Item:
    command = Executable("/bin/true", ("true",))
    (item,) = Surroundings(command, {"LD_LIBRARY_PATH": ":".join(map(str, search))}).compared(noted(folder))
    assert (item.code, item.what, item.archive) == (codes.LIBRARY, "libkernels.so", f"build {BUILD_ID[:16]}")
    return item


def test_libraries_are_compared_with_what_was_noted(tmp_path: Path) -> None:
    path, other = library(tmp_path / "a", BUILD_ID), library(tmp_path / "b", OTHER)
    command = Executable("/bin/true", ("true",))
    note(Surroundings(command, {"LD_LIBRARY_PATH": str(path.parent)}).found([OUTLINE, OUTLINE]), tmp_path)
    assert str(path) in (tmp_path / NOTED).read_text()
    assert compared(tmp_path, path.parent).level is Level.SAME
    assert compared(tmp_path, other.parent, path.parent).level is Level.SAME
    # Where it was once does not count for a command that would not look there.
    item = compared(tmp_path, other.parent)
    assert (item.level, item.here) == (Level.REFUSE, f"build {OTHER[:16]}")
    assert compared(tmp_path).level is Level.UNKNOWN
    path.write_bytes(other.read_bytes())
    assert compared(tmp_path, path.parent).level is Level.REFUSE
    path.unlink()
    assert compared(tmp_path, path.parent).level is Level.UNKNOWN


def test_a_library_that_was_nowhere_is_looked_for_again(tmp_path: Path) -> None:
    note(Surroundings(Executable("/bin/true", ("true",)), {}).found([OUTLINE]), tmp_path)
    path = library(tmp_path / "a", BUILD_ID)
    assert compared(tmp_path, path.parent).level is Level.SAME


def test_packages_are_those_of_the_commands_python(tmp_path: Path) -> None:
    (tmp_path / "vllm-0.28.0.dist-info").mkdir()
    environment = {"PYTHONPATH": str(tmp_path)}
    python = Executable(sys.executable, ("python",))
    assert Surroundings(python, environment).packages()["vllm"] == "0.28.0"
    assert Surroundings(Executable("/bin/true", ("true",)), environment).packages() == {}
