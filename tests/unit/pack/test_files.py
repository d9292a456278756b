"""JIT cache files go in beside the processes."""

from __future__ import annotations

from pathlib import Path

from foundry import archive
from foundry.model import Capture, File
from foundry.pack import add_files


def test_files_are_sorted_and_equal_bytes_are_stored_once(tmp_path: Path) -> None:
    capture = add_files(
        Capture((), (b"there",)),
        [("triton", "b/x", 0o100644, b"there"), ("triton", "a", 0o600, b"new"), ("inductor", "z", 0o700, b"new")],
    )
    assert capture.blobs == (b"there", b"new")
    assert capture.files == (
        File("inductor", "z", 0o700, 1),
        File("triton", "a", 0o600, 1),
        File("triton", "b/x", 0o644, 0),
    )
    archive.write(capture, tmp_path / "x.fdry")
    assert archive.read(tmp_path / "x.fdry") == capture
