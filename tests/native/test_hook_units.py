"""Parts of the hook that need no driver, under the sanitizers."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest
from helpers import emulation
from helpers.native_build import PROGRAMS, SANITIZERS, compile_program
from helpers.source import NATIVE

from foundry.spool.frames import Frames

PARTS = (
    "command",
    "counters",
    "crc32c",
    "exec_table",
    "fatbin_thin",
    "image_bytes",
    "image_key",
    "image_load",
    "moments",
    "placement",
    "provenance",
    "role",
    "sha256",
    "sha256_x86",
    "spool",
)


@pytest.fixture(scope="session")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = [PROGRAMS / "hook_unit.cpp", PROGRAMS / "hook_unit_placement.cpp"]
    sources += [NATIVE / "hook" / f"{part}.cpp" for part in PARTS]
    sanitizers = () if emulation.active() else SANITIZERS  # their shadow memory is too large for an emulator
    return compile_program(tmp_path_factory.mktemp("hook") / "hook_unit", sources, *sanitizers)


def run(unit: Path, test: str, folder: Path) -> str:
    done = subprocess.run([str(unit), test, str(folder)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("test", ["checksums", "placement", "claims", "images", "thin", "execs", "roles", "moments"])
def test_part(unit: Path, test: str, tmp_path: Path) -> None:
    run(unit, test, tmp_path)


def test_the_spool_holds_what_four_threads_wrote(unit: Path, tmp_path: Path) -> None:
    run(unit, "spool", tmp_path)
    frames = Frames(io.BytesIO((tmp_path / "events").read_bytes()), "unit")
    kinds = [frame.kind for frame in frames]
    assert frames.finding is None
    assert kinds[:2] == [1, 2]
    assert kinds[-2:] == [51, 99]
    assert kinds.count(52) == 8001
    assert kinds.count(51) == 2
    assert (tmp_path / "blob.0").stat().st_size == 100000


def test_a_full_disk_leaves_whole_frames_and_a_reason(unit: Path, tmp_path: Path) -> None:
    reason = run(unit, "full", tmp_path)
    frames = Frames(io.BytesIO((tmp_path / "events").read_bytes()), "unit")
    assert [frame.kind for frame in frames] == [1, 2, 52, 52]
    assert frames.finding is None
    assert "could not be written to the spool" in reason
    assert "bytes" in reason
    assert (tmp_path / "broken").stat().st_size == 0
