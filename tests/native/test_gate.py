"""What the restore engine compares of an image and a machine, before anything of it is used."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from native.restore_build import Outcome
from native.restore_scene import BASE, START, Scene

from foundry.spool import restore_reports

NONE_GOT = "got none; the archive does not prove that its graphs may lie elsewhere (`foundry capture --prove` does)"
Run = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("device", "environment", "reason"),
    [
        (
            {"name": "NVIDIA H100"},
            {},
            "mismatch-gpu-model: GPU 0: GPU model: archive NVIDIA H100, here NVIDIA Simulated H200",
        ),
        ({"processors": 66}, {}, "mismatch-multiprocessors: GPU 0: multiprocessors: archive 66, here 132"),
        ({"major": 8}, {}, "mismatch-compute-capability: GPU 0: compute capability: archive 8.0, here 9.0"),
        ({}, {"FOUNDRY_SIM_VERSION": "12080"}, "mismatch-driver: CUDA of the driver: archive 13.0, here 12.8"),
        (
            {"processors": 66},
            {"FOUNDRY_SIM_VERSION": "12080"},
            "mismatch-driver: CUDA of the driver: archive 13.0, here 12.8; "
            "mismatch-multiprocessors: GPU 0: multiprocessors: archive 66, here 132",
        ),
        (
            {"processors": 66},
            {"FOUNDRY_SIM_VERSION": "12080", "FOUNDRY_ALLOW": "mismatch-mig,mismatch-driver"},
            "mismatch-multiprocessors: GPU 0: multiprocessors: archive 66, here 132",
        ),
        (
            {"major": 8},
            {"FOUNDRY_ALLOW": "mismatch-compute-capability"},
            "mismatch-compute-capability: GPU 0: compute capability: archive 8.0, here 9.0",
        ),
        (
            {},
            {"FOUNDRY_SIM_FAIL": "cuDeviceGetName:1"},
            "host-no-driver: GPU 0: driver: archive needs one, here cuDeviceGetName: CUDA_ERROR_UNKNOWN",
        ),
        ({}, {"FOUNDRY_SIM_FAIL": "cuMemAddressReserve:1"}, f"range taken: device 0 wants {BASE:#x}, {NONE_GOT}"),
    ],
)
def test_what_does_not_fit_disarms_and_the_program_runs(
    run: Run, kernels: bytes, device: dict[str, object], environment: dict[str, str], reason: str
) -> None:
    scene = Scene(kernels, **device)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "mode", "find:decode:1", "alloc:4096", **environment)
    assert outcome.lines[:2] == [f"mode 0 {reason}", f"not found: {reason}"]
    assert outcome.lines[2].startswith("alloc 0x")
    assert f"program-0 disarmed {reason}" in outcome.status.splitlines()


def test_archive_of_a_real_driver_is_not_used_on_the_simulator(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels)
    scene.file.simulated = 0
    outcome = run(scene, *START, "mode")
    assert outcome.lines == ["mode 0 mismatch-simulated: simulated: archive a real driver, here the simulator"]


def test_what_is_allowed_is_let_pass_and_told(run: Run, kernels: bytes) -> None:
    scene = Scene(kernels, processors=66, name="NVIDIA H100")
    scene.add_pair("1", 5)
    codes = ",mismatch-gpu-model,,mismatch-multiprocessors"
    outcome = run(scene, *START, "mode", "find:decode:1", FOUNDRY_ALLOW=codes)
    assert outcome.lines[0] == "mode 2 "
    (report,) = restore_reports(outcome.spool)
    (told,) = report.told
    assert told.code == "mismatch-allowed"
    assert told.text == (
        "mismatch-gpu-model: GPU 0: GPU model: archive NVIDIA H100, here NVIDIA Simulated H200; "
        "mismatch-multiprocessors: GPU 0: multiprocessors: archive 66, here 132"
    )


def test_arenas_have_the_recorded_size(run: Run, kernels: bytes) -> None:
    """The size that a capture takes follows from the memory, which another GPU may have more of."""
    scene = Scene(kernels)
    scene.add_pair("1", 5)
    outcome = run(scene, *START, "mode", "alloc:4096", "wait:decode:1", FOUNDRY_SIM_MEMORY=str(900 << 30))
    assert outcome.lines == ["mode 2 ", f"alloc {BASE:#x}", "wait 0"]
