"""The driver is asked in a process of its own; whatever it does is an answer."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from foundry import native
from foundry.compat import probe

NO_DEVICE = "cuInit: CUDA_ERROR_NO_DEVICE"


def simulated(**more: str) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(native.simulator_directory()), **more}


def fake_driver(folder: Path, body: str) -> dict[str, str]:
    """A libcuda.so.1 whose cuInit does as the body says."""
    source = folder / "driver.c"
    source.write_text(
        "#include <stdlib.h>\n#include <unistd.h>\n"
        "int cuDriverGetVersion(int *version) { *version = 13000; return 0; }\n"
        f"int cuInit(unsigned flags) {{ {body} return 0; }}\n"
        "int cuDeviceGetCount(int *count) { *count = 1; return 0; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(source)], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


def test_the_simulator_tells_all_of_its_gpu() -> None:
    machine = probe.ask(simulated(FOUNDRY_SIM_GPU="NVIDIA Simulated A100:8.0:108", FOUNDRY_SIM_DEVICES="2"))
    assert (machine.fault, machine.version, machine.simulated) == ("", 13000, True)
    assert [device.ordinal for device in machine.devices] == [0, 1]
    first = machine.devices[0]
    assert (first.name, first.compute_major, first.compute_minor) == ("NVIDIA Simulated A100", 8, 0)
    assert (first.multiprocessors, first.virtual_memory, first.mig) == (108, True, False)
    assert first.total_memory > 1 << 30
    assert len(bytes.fromhex(first.uuid)) == 16
    assert first.free_memory is None


@pytest.mark.parametrize(
    ("environment", "fault", "version"),
    [
        ({"FOUNDRY_SIM_DEVICES": "0"}, NO_DEVICE, 13000),
        ({"FOUNDRY_SIM_MASK": "cuInit"}, "cuInit: CUDA_ERROR_NOT_FOUND", 13000),
        ({"FOUNDRY_SIM_FAIL": "cuDeviceGetName:1:2"}, "cuDeviceGetName: CUDA_ERROR_OUT_OF_MEMORY", 13000),
    ],
)
def test_a_driver_that_refuses_is_an_answer(environment: dict[str, str], fault: str, version: int) -> None:
    machine = probe.ask(simulated(**environment))
    assert (machine.fault, machine.version, machine.devices) == (fault, version, ())


def test_no_driver_is_an_answer() -> None:
    assert "libcuda.so.1: cannot open shared object file" in probe.ask({}).fault


def test_a_driver_that_hangs_is_given_up_after_the_time_limit(tmp_path: Path) -> None:
    environment = fake_driver(tmp_path, "sleep(60);")
    begin = time.monotonic()
    machine = probe.ask(environment, seconds=0.5)
    assert time.monotonic() - begin < 10
    assert machine.fault == "the driver did not answer within 0.5 s, in cuInit"


@pytest.mark.parametrize(("body", "name"), [("abort();", "SIGABRT"), ("*(volatile int *)0 = 1;", "SIGSEGV")])
def test_a_driver_that_crashes_is_an_answer(tmp_path: Path, body: str, name: str) -> None:
    assert probe.ask(fake_driver(tmp_path, body)).fault == f"the driver crashed with {name}, in cuInit"


def test_a_driver_that_ends_the_process_or_lacks_functions_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    ended = probe.ask(fake_driver(tmp_path / "one", "_exit(0);"))
    assert ended.fault == "the driver gave no answer that can be read, in cuInit"
    lacking = probe.ask(fake_driver(tmp_path / "two", ""))
    assert lacking.fault == "cuDeviceGet: the driver does not have it"


def test_nothing_of_python_is_loaded_into_the_driver_process(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('must not run')")
    machine = probe.ask({**os.environ, **simulated(PYTHONPATH=str(tmp_path))})
    assert machine.fault == ""
