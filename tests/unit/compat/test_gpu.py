from __future__ import annotations

from pathlib import Path

from foundry.compat import gpu


def test_models_and_driver_from_the_kernel_module(tmp_path: Path) -> None:
    for slot in ("0000:01:00.0", "0000:02:00.0"):
        folder = tmp_path / "gpus" / slot
        folder.mkdir(parents=True)
        (folder / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\nGPU UUID: \t GPU-x\n")
    (tmp_path / "version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 13.3.0\n"
    )
    assert gpu.models(tmp_path) == ["NVIDIA H200", "NVIDIA H200"]
    assert gpu.driver_version(tmp_path) == "580.159.04"


def test_without_a_driver_nothing_is_known(tmp_path: Path) -> None:
    assert gpu.models(tmp_path / "none") == []
    assert gpu.driver_version(tmp_path / "none") == ""
    (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
    assert gpu.models(tmp_path) == []


def test_the_simulator_is_named_as_it_names_itself() -> None:
    assert gpu.expected_models({}, simulated=True) == ["NVIDIA Simulated H200"]
    assert gpu.expected_models({"FOUNDRY_SIM_GPU": "Other:80:4"}, simulated=True) == ["Other"]


def test_the_default_model_is_the_simulators_own() -> None:
    levers = Path(__file__).parents[3] / "foundry" / "native" / "sim" / "levers.cpp"
    assert f'"{gpu.SIMULATED_MODEL}"' in levers.read_text()
