"""What a program puts into memory that it allocates while it captures, from the command line to the restored result."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.native_build import PROGRAMS, compile_program, link_simulator, make_kernels

from foundry import archive, native


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    make_kernels(tmp_path / "kernels.image", PROGRAMS / "sim_kernels.c")
    source = PROGRAMS / "hook_programs" / "tables.c"
    compile_program(tmp_path / "tables", [source], *link_simulator())
    return [str(tmp_path / "tables"), str(tmp_path / "kernels.image")]


def test_it_is_kept_and_comes_back(tmp_path: Path, words: list[str]) -> None:
    command = CommandLine(tmp_path, native.library_directory())
    captured = command.run("capture", "--sim", "-o", "a.fdry", "--", *words, "many")
    assert captured.returncode == 0, captured.stderr
    assert len(archive.read(command.work / "a.fdry").processes[0].contents) == 41
    restored = command.run("restore", "--sim", "a.fdry", "--", *words, "many")
    assert (restored.returncode, restored.stdout) == (0, captured.stdout)
    assert "not restored" not in restored.stderr


def test_without_contents_none_is_kept(tmp_path: Path, words: list[str]) -> None:
    command = CommandLine(tmp_path, native.library_directory())
    captured = command.run("capture", "--sim", "--no-contents", "-o", "a.fdry", "--", *words, "table")
    assert captured.returncode == 0, captured.stderr
    assert archive.read(command.work / "a.fdry").processes[0].contents == ()


def test_what_is_too_large_is_named_and_not_restored(tmp_path: Path, words: list[str]) -> None:
    command = CommandLine(tmp_path, native.library_directory())
    captured = command.run("capture", "--sim", "-o", "a.fdry", "--", *words, "large")
    assert captured.returncode == 0, captured.stderr
    (told,) = [item for item in archive.read(command.work / "a.fdry").findings if item.code == "contents-too-large"]
    assert told.text == (
        "not restorable: points to memory that was allocated during a capture (allocation 0 of 83886080 bytes) holds "
        "more than is kept"
    )
    restored = command.run("restore", "--sim", "a.fdry", "--", *words, "large")
    assert restored.stdout == captured.stdout
