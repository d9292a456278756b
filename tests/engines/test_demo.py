"""`make demo`, and the demo's server through capture and restore on the simulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foundry import native

HERE = Path(__file__).resolve().parent
SERVER = HERE / "decode_server.py"
FOUNDRY = [sys.executable, "-m", "foundry"]


def run(command: list[Any], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOUNDRY_SIM")}
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "120", **more}
    return subprocess.run(
        list(map(str, command)),
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_demo_shows_what_was_saved(tmp_path: Path) -> None:
    done = run([sys.executable, HERE / "demo.py"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("simulated", "5 of 5", "29 prompts", "equal", "KiB"):
        assert text in done.stdout
    assert len(done.stdout.splitlines()) <= 60


def test_the_demo_fails_when_a_step_fails(tmp_path: Path) -> None:
    done = run([sys.executable, HERE / "demo.py"], tmp_path, FOUNDRY_LIBRARY_DIR=str(tmp_path / "nothing"))
    assert done.returncode == 1
    assert "demo failed" in done.stdout


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("captured")
    archive = folder / "server.fdry"
    command = [*FOUNDRY, "capture", "--sim", "-o", archive, "--", sys.executable, SERVER, "--once"]
    done = run(command, folder, FOUNDRY_SIM_SEED="7")
    assert done.returncode == 0, done.stderr
    return archive, done.stdout


@pytest.mark.parametrize("seed", ["7", "8", "9"])
def test_a_restored_server_makes_the_same_tokens(captured: tuple[Path, str], tmp_path: Path, seed: str) -> None:
    archive, expected = captured
    report = tmp_path / "report.json"
    command = [
        *FOUNDRY, "restore", "--sim", archive, "--report", report, "--", sys.executable, SERVER, "--once",
    ]  # fmt: skip
    done = run(command, tmp_path, FOUNDRY_SIM_SEED=seed)
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    told = json.loads(report.read_text())
    counters = told["counters"]
    assert (counters["warm_ups_skipped"], counters["captures_skipped"]) == (5, 5), told
    assert counters.get("warm_ups_run", 0) == counters.get("captures_run", 0) == 0
    assert counters.get("stream_captures", 0) == 0
    assert told["graphs_given_up"] == 0


def test_the_scenario_of_the_gpu_tests_holds_on_the_simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE.parent / "gpu"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(native.simulator_directory()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from scenarios import demo_server

    assert demo_server(tmp_path, "--sim")["report"]["simulated"]


def test_a_server_that_allocates_otherwise_is_captured_anew(captured: tuple[Path, str], tmp_path: Path) -> None:
    archive, expected = captured
    report, program = tmp_path / "report.json", tmp_path / "otherwise.py"
    program.write_text(
        "import runpy, sys\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "import decode_model\n"
        "load = decode_model.kernel_image\n"
        "def image():\n"
        "    decode_model.call(decode_model.driver.cuMemAlloc(1 << 22))\n"
        "    return load()\n"
        "decode_model.kernel_image = image\n"
        f"runpy.run_path({str(SERVER)!r}, run_name='__main__')\n"
    )
    allowed = ["--allow", "mismatch-arguments"]
    command = [*FOUNDRY, "restore", "--sim", *allowed, archive, "--report", report, "--"]
    command += [sys.executable, program, "--once"]
    done = run(command, tmp_path)
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    told = json.loads(report.read_text())
    assert told["counters"].get("captures_run", 0) == 5
    assert told["graphs_restored"] == 0
