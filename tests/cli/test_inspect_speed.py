"""The first screen of a large archive is there at once: it unpacks nothing but the summary, and imports no numpy."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.synthetic import Shape, make_spool

import foundry
from foundry import archive
from foundry.pack import pack

FOUNDRY = Path(__file__).parents[1] / "helpers" / "run_foundry.py"
MOST_SECONDS = 1.2
"""Of a slow and busy machine; `benchmarks/` holds the bound on a quiet one."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 graphs of 1,000 nodes."""
    folder = tmp_path_factory.mktemp("large")
    shape = Shape(graphs=256, layers=40, kernels_per_layer=25, parameter_words=8, images=8, image_bytes=2000)
    capture, _ = pack(make_spool(folder / "spool", shape), context={"argv": '["python", "serve.py"]'})
    archive.write(capture, folder / "a.fdry")
    return folder / "a.fdry"


def spent(*words: str) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = dict(os.environ, COLUMNS="80", PYTHONPATH=str(Path(foundry.__file__).parents[1]))
    result = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result.stdout + result.stderr


def test_the_first_screen_takes_little_time(large: Path) -> None:
    best, text = min(spent(str(FOUNDRY), "inspect", str(large)) for _ in range(3))
    assert "256, all restorable" in text
    assert best < MOST_SECONDS


def test_it_imports_no_numpy(large: Path) -> None:
    _, text = spent("-X", "importtime", str(FOUNDRY), "inspect", str(large))
    assert "foundry.archive.opened" in text
    assert not [line for line in text.splitlines() if line.rpartition("|")[2].strip() == "numpy"]


def test_one_graph_of_many_takes_seconds_at_most(large: Path) -> None:
    taken, text = spent(str(FOUNDRY), "inspect", str(large), "--graph", "9", "--svg")
    assert text.startswith("<svg")
    assert taken < 10
