"""The scenarios on a real device."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from native_clients import NATIVE_CLIENTS
from scenarios import SCENARIOS

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]


def device_missing() -> str | None:
    """Say why nothing can run here, or None."""
    import ctypes

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver"
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "no CUDA device"
    return None


@pytest.fixture(scope="module", autouse=True)
def device() -> None:
    reason = device_missing()
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, tmp_path: Path) -> None:
    if name != "demo_server" and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    SCENARIOS[name](tmp_path)


def test_the_simulator_answers_as_the_driver_does(tmp_path: Path) -> None:
    from driver_answers import driver_answers

    driver_answers(tmp_path)


@pytest.mark.parametrize("name", ["one_gpu_shared", "two_gpus"])
def test_memory_is_shared_between_processes(name: str, tmp_path: Path) -> None:
    import two_gpus

    if "skipped" in (found := getattr(two_gpus, name)(tmp_path)):
        pytest.skip(found["skipped"])


@pytest.mark.parametrize("what", ["runs", "cycles"])
def test_nothing_grows(what: str, tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "soak"))
    import soak

    getattr(soak, what)(tmp_path)


def test_the_c_engine(tmp_path: Path) -> None:
    from tinyllm_engine import tinyllm_engine

    tinyllm_engine(tmp_path, runs=1)


@pytest.mark.parametrize("name", NATIVE_CLIENTS)
def test_a_client_of_others(name: str, tmp_path: Path) -> None:
    if reason := NATIVE_CLIENTS[name](tmp_path).get("skipped"):
        pytest.skip(reason)


def test_the_archive_tools(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    from archive_tools import archive_tools

    archive_tools(tmp_path)


def test_a_proven_archive_elsewhere(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    from proving import proven_and_moved

    proven_and_moved(tmp_path)


def test_the_whole_decode_job(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
    import decode_job

    figures = decode_job.measure(tmp_path, restores=1)
    assert decode_job.failures(figures) == []
