"""What must hold of every capture: it comes back, its bytes and its id follow from it alone."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.synthetic import Shape, make_spool
from helpers.varied import varied_capture

import foundry
from foundry import archive
from foundry.archive import writer
from foundry.model import Capture
from foundry.pack import pack

HERE = Path(__file__).parent
WRITTEN_ELSEWHERE = """
import os, random, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from helpers.varied import varied_capture
from foundry import archive
if sys.argv[4]:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for seed in range(int(sys.argv[3])):
    archive.write(varied_capture(random.Random(seed), 3), Path(sys.argv[2]) / f"{seed}.fdry")
"""
MANY = 12


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """A capture with several blob sections and long tables, which are compressed in another way than small ones."""
    shape = Shape(graphs=6, layers=4, kernels_per_layer=26, images=60, kernels=60)
    return pack(make_spool(tmp_path_factory.mktemp("large") / "spool", shape))[0]


def captures(large: Capture) -> list[Capture]:
    return [*(varied_capture(random.Random(seed), 3) for seed in range(MANY)), large]


def test_captures_come_back(large: Capture, tmp_path: Path) -> None:
    for index, capture in enumerate(captures(large)):
        path = tmp_path / f"{index}.fdry"
        archive.write(capture, path)
        assert archive.read(path) == capture
        with archive.open_archive(path) as opened:
            assert tuple(opened.processes()) == capture.processes
            assert [data for _, data in sorted(opened.blobs())] == list(capture.blobs)
            assert [opened.blob(number) for number in range(len(capture.blobs))] == list(capture.blobs)
            assert opened.roles == tuple(process.role for process in capture.processes)


def test_the_id_does_not_depend_on_how_it_is_compressed(
    large: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for capture in captures(large):
        found, sizes = {archive.write(capture, tmp_path / "a.fdry", force=True)}, set()
        with monkeypatch.context() as patch:
            for text, tables, blobs, window in ((1, (1,), 1, 18), (19, (7, 15), 5, 23)):
                patch.setattr(writer, "_TEXT_LEVEL", text)
                patch.setattr(writer, "_TABLE_LEVELS", tables)
                patch.setattr(writer, "_BLOB_LEVEL", blobs)
                patch.setattr(writer, "_BLOB_WINDOW", window)
                found.add(archive.write(capture, tmp_path / "b.fdry", force=True))
                sizes.add((tmp_path / "b.fdry").stat().st_size)
                assert archive.read(tmp_path / "b.fdry") == capture
        assert len(found) == 1 and len(sizes) == 2


def test_the_bytes_follow_from_the_capture(large: Capture, tmp_path: Path) -> None:
    for index, (seed, one_core) in enumerate((("0", ""), ("1", "yes"))):
        folder = tmp_path / str(index)
        folder.mkdir()
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(foundry.__file__).parents[1])}
        arguments = [str(HERE.parent), str(folder), str(MANY), one_core]
        subprocess.run([sys.executable, "-c", WRITTEN_ELSEWHERE, *arguments], env=environment, check=True)
    for number in range(MANY):
        assert (tmp_path / "0" / f"{number}.fdry").read_bytes() == (tmp_path / "1" / f"{number}.fdry").read_bytes()


def test_the_number_of_cores_does_not_change_the_bytes(
    large: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.write(large, tmp_path / "many.fdry")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    archive.write(large, tmp_path / "one.fdry")
    assert (tmp_path / "many.fdry").read_bytes() == (tmp_path / "one.fdry").read_bytes()
