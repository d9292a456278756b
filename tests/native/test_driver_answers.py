"""The simulator's answers that `tests/gpu/driver_answers.py` compares a real driver with are the simulator's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.native_build import base_environment, sanitized

from foundry import native

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

import driver_answers


def test_the_table_is_what_the_simulator_answers() -> None:
    done = subprocess.run(
        [sys.executable, driver_answers.__file__], env=base_environment(), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == driver_answers.SIMULATED


@pytest.mark.skipif(sanitized(), reason="an instrumented library needs its runtime first")
def test_a_hooked_driver_gives_the_same_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(native.simulator_directory()))
    driver_answers.driver_answers(tmp_path, "--sim")
