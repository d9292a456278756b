"""A restore takes its kernels from images that hold no others, and gives what the capture gave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.image_reader import ImageFile
from helpers.native_build import PROGRAMS, compile_program, make_kernels
from helpers.roundtrip import Program, Run
from native.hook_run import events

from foundry import diff, env, image
from foundry.binary.entries import entries
from foundry.model import NONE

BASE = 0x403500000000
"""Where the hook places the first allocation of a program."""
READ = ["read 105 105 105 105", "read 107 107 107 107"]


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder, self.kernels = folder, folder / "kernels.image"
        compile_program(folder / "program", [PROGRAMS / "restore_program.cpp"])
        make_kernels(self.kernels, PROGRAMS / "trimmed_kernels.c")
        start = [str(folder / "program"), "init", "context", "alloc:4096", f"library:{self.kernels}"]
        record = [f"record:decode:1:{BASE}:5", f"record:decode:2:{BASE}:7"]
        read = ["sync", f"read:{BASE}:4"]
        ask = [[f"wait:decode:{key}", f"launch:decode:{key}", *read] for key in "12"]
        asked = [*start, *ask[0], *ask[1], "attribute:0:spare:8", "commit"]
        self.program = Program([*start, *record, "commit"], restore_command=asked)
        self.captured = self.program.captured(folder / "captured", 7)

    def built(self, folder: Path) -> Path:
        """Give the restore image of the capture."""
        (process,) = self.captured.capture.processes
        path = folder / f"{process.role}.image"
        image.build(self.captured.capture, process.role, path, "00" * 32)
        return path

    def restored(self, session: Path, **environment: str) -> Run:
        return self.program.restored(session, 11, self.captured.capture, **environment)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("trimmed"))


def broken(path: Path, *, whole: bool) -> Path:
    """Damage the images with all kernels, or those with fewer."""
    built = ImageFile(path)
    begin = int(built.header["sections"][6]["offset"])
    data = bytearray(built.data)
    for entry in built.images:
        if (entry["whole"] == NONE) == whole:
            data[begin + int(built.blobs[int(entry["blob"])]["offset"]) + 50] ^= 1
    path.write_bytes(data)
    return path.parent


def test_the_image_of_graphs_has_their_kernels_alone(bench: Bench, tmp_path: Path) -> None:
    built = ImageFile(bench.built(tmp_path))
    whole, less = built.images
    assert (whole["whole"], less["whole"]) == (NONE, 0)
    assert built.blob(whole["blob"]) == bench.kernels.read_bytes()
    assert [name in entries(built.blob(less["blob"]), 90) for name in ("fill", "add", "spare")] == [True, True, False]
    assert built.kernels["image"].tolist() == [1, 1]


@pytest.mark.parametrize("trim", ["1", "0"])
def test_results_are_the_same(bench: Bench, tmp_path: Path, trim: str) -> None:
    restored = bench.restored(tmp_path / "restored", **{env.RESPOOL: "0", env.TRIM: trim})
    lines = restored.output.splitlines()
    assert [line for line in lines if line.startswith("read")] == READ
    assert "attribute 1234" in lines
    assert sum(event.state for event in events(restored.spool(), "GraphRestored")) == 2


@pytest.mark.parametrize(("whole", "trim"), [(True, "1"), (False, "")], ids=["trimmed", "whole"])
def test_it_is_the_one_image_or_the_other(bench: Bench, tmp_path: Path, whole: bool, trim: str) -> None:
    """What is not needed may be damaged."""
    folder = broken(bench.built(tmp_path), whole=whole)
    settings = {env.RESPOOL: "0", env.TRIM: trim, env.IMAGE: str(folder)}
    restored = bench.restored(tmp_path / "restored", **settings)
    assert [line for line in restored.output.splitlines() if line.startswith("read")] == READ


@pytest.mark.parametrize("loads", [True, False], ids=["loads", "does_not_load"])
def test_what_is_told_is_what_a_capture_tells(bench: Bench, tmp_path: Path, loads: bool) -> None:
    """Whether the program loads the image itself or not."""
    words = bench.program.restore_command or ()
    alone = [word for word in words if loads or not word.startswith(("library", "attribute"))]
    restored = replace(bench.program, restore_command=alone).restored(tmp_path / "restored", 11, bench.captured.capture)
    assert list(diff.compare(bench.captured.capture, restored.capture)) == []
