"""Compiles the `sim_*.cpp` programs and runs each on the simulator: one behaviour a program, exit 0 if it holds."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import emulation
from helpers.native_build import (
    PROGRAMS,
    SANITIZERS,
    base_environment,
    compile_program,
    link_simulator,
    make_kernels,
    sanitized,
)
from helpers.source import NATIVE

from foundry import native

LARGE_RANGES = ("sim_fixed_ranges", "sim_virtual_memory")
BEHAVIOURS = [
    pytest.param(path.stem, marks=[emulation.too_much("reserves terabytes")] if path.stem in LARGE_RANGES else [])
    for path in sorted(PROGRAMS.glob("sim_*.cpp"))
]


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the images and the preloaded library that the programs use."""
    folder = tmp_path_factory.mktemp("sim")
    kernels = PROGRAMS / "sim_kernels.c"
    make_kernels(folder / "kernels.fsim", kernels)
    make_kernels(folder / "kernels.fatbin", kernels, "--fatbin")
    compile_program(folder / "interposer.so", [PROGRAMS / "sim_interposer.c"], "-shared", "-fPIC")
    return folder


def program_environment(name: str, kit: Path, **extra: str) -> dict[str, str]:
    """Build the environment of a program: little of ours, what it asks for, and the simulator."""
    environment = base_environment()
    del environment["FOUNDRY_SIM_SEED"]
    if sanitized():
        environment["FOUNDRY_SIM_TEST_SANITIZED"] = "1"
    environment["FOUNDRY_SIM_TEST_IMAGE"] = str(kit / "kernels.fsim")
    environment["FOUNDRY_SIM_TEST_FATBIN"] = str(kit / "kernels.fatbin")
    source = PROGRAMS / f"{name}.cpp"
    if source.exists() and (match := re.search(r"^// environment: (.*)$", source.read_text(), re.MULTILINE)):
        for setting in match[1].split():
            key, value = setting.split("=", 1)
            environment[key] = value.replace("+", " ").replace("@interposer@", str(kit / "interposer.so"))
    return environment | extra


def build(name: str, kit: Path) -> Path:
    """Compile a program once a session."""
    program = kit / name
    if not program.exists():
        flags = SANITIZERS if sanitized() else ()
        compile_program(program, [PROGRAMS / f"{name}.cpp"], "-O0", *flags, *link_simulator())
    return program


def run(name: str, kit: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Build and run a program."""
    return subprocess.run(
        [str(build(name, kit))],
        env=program_environment(name, kit, **extra),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_behaviour(name: str, kit: Path) -> None:
    """Each program exits 0."""
    done = run(name, kit)
    assert done.returncode == 0, done.stderr


def test_seeds_differ_and_repeat(kit: Path) -> None:
    """Another seed gives other handles, addresses and orders; the same seed gives the same."""
    outputs = [run("sim_order", kit, FOUNDRY_SIM_SEED=seed).stdout for seed in ("1", "1", "2", "3", "4")]
    assert outputs[0] == outputs[1]
    assert len({output.split("graph")[0] for output in outputs}) > 1
    assert len({output.split("graph")[1] for output in outputs}) == 4


def test_entropy_is_the_default_seed(kit: Path) -> None:
    """Without a seed no two runs are alike."""
    assert run("sim_order", kit).stdout != run("sim_order", kit).stdout


@pytest.mark.parametrize("lever", ["FOUNDRY_SIM_FAIL", "FOUNDRY_SIM_MASK"])
def test_a_lever_that_names_nothing_is_said(lever: str, kit: Path) -> None:
    """A misspelt function in a lever does not pass in silence."""
    done = run("sim_order", kit, **{lever: "cuMemAllocate"})
    assert done.stderr == f"foundry simulator: {lever} names no exported function: `cuMemAllocate`\n"


def test_images_are_deterministic(kit: Path, tmp_path: Path) -> None:
    """The same source makes the same bytes, wherever it is made."""
    elsewhere = tmp_path / "copy.c"
    shutil.copy(PROGRAMS / "sim_kernels.c", elsewhere)
    again = make_kernels(tmp_path / "again.fsim", elsewhere)
    assert again == (kit / "kernels.fsim").read_bytes()
    assert str(PROGRAMS).encode() not in (kit / "kernels.fsim").read_bytes()


@pytest.mark.parametrize("line", ["// kernel: broken(what)", "// nothing"])
def test_packer_refuses(line: str, tmp_path: Path) -> None:
    """A source that declares nothing, or a type that is unknown, is refused with its reason."""
    source = tmp_path / "bad.c"
    source.write_text(line + "\n")
    done = subprocess.run(
        [sys.executable, str(NATIVE / "sim" / "make_image.py"), str(tmp_path / "out"), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("make_image: ")
    assert not (tmp_path / "out").exists()


def test_exports_are_the_list() -> None:
    """The library exports the symbols of the list, its marker, and nothing else."""
    listing = (NATIVE / "table" / "driver_functions.def").read_text()
    expected = {"foundry_sim_version"}
    for match in re.finditer(r"^FN(?:_STREAM)?\((\w+), (\w+), (\w+),", listing, re.MULTILINE):
        expected.add(match[2])
        if match[0].startswith("FN_STREAM"):
            expected.add(f"{match[2]}_{match[3]}")
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(native.simulator_directory() / "libcuda.so.1")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {line.split()[-1] for line in symbols.stdout.splitlines()} == expected


@emulation.too_much("the simulator is loaded by Python")
def test_cuda_bindings(kit: Path) -> None:
    """`cuda.bindings` runs a kernel on it: launched, captured, replayed."""
    if sanitized():
        pytest.skip("an instrumented library needs its runtime first")
    pytest.importorskip("cuda.bindings")
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "sim_cuda_bindings.py"), str(kit / "kernels.fsim")],
        env=program_environment("sim_cuda_bindings", kit),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "NVIDIA Simulated H200"
