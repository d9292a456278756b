"""The scenarios of other people's clients (`tests/gpu/native_clients.py`) on the simulator.

The CUDA runtime and CuPy are stand-ins there: the real ones run on a GPU only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.native_build import compile_program, link_simulator, make_kernels
from native.hook_run import Bench

import foundry
from foundry import native

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu" / "clients"))

import native_clients
import rounds as rounds_module

GPU = Path(native_clients.__file__).parent
STAND_IN = GPU / "clients" / "stand_in"
CXX = ("-xc++", f"-I{STAND_IN}", f"-I{foundry.get_include()}")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def kernels(bench: Bench) -> Path:
    make_kernels(bench.folder / "clients.image", GPU / "clients" / "samples_kernels.c")
    return bench.folder / "clients.image"


@pytest.fixture(scope="module")
def samples(bench: Bench) -> Path:
    return compile_program(bench.folder / "samples", [GPU / "clients" / "samples.cu"], *CXX, *link_simulator())


@pytest.fixture(autouse=True)
def simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernels: Path) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(native.simulator_directory()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("SAMPLES_KERNELS", str(kernels))
    monkeypatch.setenv("CUPY_KERNELS", str(kernels))


def test_a_program_as_the_cuda_samples_are(samples: Path, tmp_path: Path) -> None:
    found = native_clients.samples_client(tmp_path, "--sim", program=samples)["figures"]
    assert found["graphs"] == {
        "stored": 9,
        "restorable": 6,
        "without a name": 1,
        "refused": {"exec-changed": 1, "node-unsupported": 2},
        "reasons": {
            "exec-changed": "the exec was changed after it was made: updated",
            "node-unsupported": "node 0: allocates memory within the graph",
        },
    }
    assert found["kernels"] == ["combine", "mix"]
    assert (found["restored"], found["lines"], found["moved"]) == (5, 32, "restored, updated in place")


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_it_gives_the_same_in_every_order_of_nodes(samples: Path, seed: str, tmp_path: Path) -> None:
    given = {
        subprocess.run([samples], env={**os.environ, "FOUNDRY_SIM_SEED": one}, capture_output=True, check=True).stdout
        for one in ("7", seed)
    }
    assert len(given) == 1


def without(bench: Bench, name: str, *lines: str) -> Path:
    """Compile samples.cu without some of its lines."""
    source = (GPU / "clients" / "samples.cu").read_text()
    for line in lines:
        assert source.count(f"    {line}\n") == 1
        source = source.replace(f"    {line}\n", "")
    (bench.folder / f"{name}.cu").write_text(source)
    return compile_program(bench.folder / name, [bench.folder / f"{name}.cu"], *CXX, *link_simulator())


def test_it_notices_a_graph_that_gives_other_bytes(bench: Bench) -> None:
    wrong = without(bench, "wrong", "MUST(cudaGraphKernelNodeSetParams(nodes[0], &kernel));")
    done = subprocess.run([wrong], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "by-hand, round 0: the graph gives other bytes than its launches\n"


def test_cupy_programs_get_the_graphs_that_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(STAND_IN))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STAND_IN), str(Path(foundry.__file__).parents[1])]))
    found = native_clients.cupy_client(tmp_path, "--sim")["figures"]
    assert (found["graphs"]["stored"], found["graphs"]["refused"], found["restored"]) == (4, {}, 3)


def test_cuda_core_programs_get_the_graphs_that_they_name(tmp_path: Path, kernels: Path) -> None:
    pytest.importorskip("cuda.core")
    found = native_clients.core_client(tmp_path, "--sim", image=kernels)["figures"]
    assert (found["graphs"]["stored"], found["graphs"]["refused"], found["restored"]) == (4, {}, 3)


def test_graphs_without_a_name_are_captured_anew_and_nothing_fails(bench: Bench, tmp_path: Path) -> None:
    program = without(bench, "nameless", "foundry_graph_begin(SET, pass->name);", "foundry_graph_end(pass->layout);")
    found = native_clients.in_three_ways(tmp_path, [program], "--sim", kernels=("mix", "combine"))
    assert (found["graphs"]["without a name"], found["graphs"]["stored"]) == (9, 9)
    assert found["graphs"]["refused"] == {"exec-changed": 1, "node-unsupported": 2}
    assert (found["restored"], found["captured_anew"]) == (0, 8)


@pytest.mark.parametrize("way", ["capture", "restore"])
def test_another_output_fails(way: str, samples: Path, tmp_path: Path) -> None:
    shell = f'[ "$FOUNDRY_MODE" = {way} ] && echo another; exec "{samples}"'
    with pytest.raises(AssertionError, match=f"{way}d, it gives another output"):
        native_clients.in_three_ways(tmp_path, ["sh", "-c", shell], "--sim")


def test_a_kernel_that_inspect_does_not_show_fails(samples: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="inspect does not show other, only combine, mix"):
        native_clients.in_three_ways(tmp_path, [samples], "--sim", kernels=("mix", "other"))
    kept = json.loads((tmp_path / "figures.json").read_text())
    assert (kept["restored"], kept["kernels"], len(kept["rows"])) == (5, ["combine", "mix"], 9)


@pytest.mark.parametrize(
    ("script", "name"),
    [("echo 9.0; echo 8.0", "sm_90"), ("echo 10.3", "sm_103"), ("echo none", "native"), ("exit 9", "native")],
)
def test_the_gpu_tells_what_to_compile_for(
    script: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert native_clients.architecture() == name
    tool.unlink()
    assert native_clients.architecture() == "native"


ROW = {"restorable": True, "reason_code": "", "reason": "", "nodes": 1, "set": ""}


@pytest.mark.parametrize(
    "rows",
    [[], [{**ROW, "restorable": False}], [{**ROW, "reason_code": "x"}], [{**ROW, "nodes": 0}]],
    ids=["none", "refused without a reason", "a reason for one that is not refused", "empty"],
)
def test_graphs_without_a_reason_fail(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(AssertionError):
        native_clients.graphs_of(rows)


@pytest.mark.parametrize(
    ("client", "what"),
    [
        ("jax_client", "jax"),
        ("jax_loops_client", "jax"),
        ("cupy_client", "cupy"),
        ("core_client", "cuda.core"),
        ("samples_client", "nvcc"),
    ],
)
def test_what_is_not_installed_is_skipped_by_name(
    client: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(native_clients, "installed", lambda module: False)
    monkeypatch.setattr(native_clients, "nvcc", lambda: None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    import run_all

    monkeypatch.setattr(run_all, "keep_machine", lambda out: None)
    monkeypatch.setattr(sys, "argv", ["run_all.py", str(tmp_path), client])
    assert run_all.main() == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary[client]["skipped"] == f"{what} is not installed"
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"skipped  {client}  {what} is not installed")


def test_a_module_below_one_that_is_not_there_is_not_installed() -> None:
    assert not native_clients.installed("no_such_package.core")
    assert native_clients.installed("numpy.linalg")


COMPILER = """#!/bin/sh
printf '%s\\n' "$@" > arguments
while [ "$1" != -o ]; do shift; done
cp "{samples}" "$2"
"""


@pytest.mark.parametrize("by", ["PATH", "CUDA_HOME"])
def test_the_runtime_is_linked_in_and_default_streams_are_each_threads_own(
    by: str, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "toolkit" / "bin" / "nvcc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(COMPILER.format(samples=samples))
    compiler.chmod(0o755)
    before = [folder for folder in os.environ["PATH"].split(os.pathsep) if not (Path(folder) / "nvcc").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join([str(compiler.parent), *before] if by == "PATH" else before))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(compiler.parents[1]) if by == "CUDA_HOME" else "")
    assert native_clients.nvcc() == str(compiler)
    found = native_clients.samples_client(tmp_path / "run", "--sim")["figures"]
    words = (tmp_path / "run" / "arguments").read_text().splitlines()
    assert words[:4] == ["-cudart", "static", "--default-stream", "per-thread"]
    assert words[-2:] == [str(GPU / "clients" / "samples.cu"), "-ldl"]
    assert found["restored"] == 5


def test_a_round_in_which_a_graph_gives_other_bytes_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The names are those of rounds; what else is printed are digests."""
    seen = []

    def run(values: Any, work: Callable[[], object]) -> bytes:
        seen.append(values.tobytes())
        return values.tobytes() + bytes([int(work() and len(seen) == 3)])  # type: ignore[call-overload]

    rounds = rounds_module.Rounds(run)
    rounds.compare("decode", 8, lambda: True, lambda: False)
    assert rounds.finish({}, {"decode": "there is none"}) == 1
    said = capsys.readouterr()
    assert [line.rsplit(" ", 1)[0] for line in said.out.splitlines()] == ["decode 0", "decode 1", "decode 2"]
    assert said.err.splitlines() == [
        "facts {}",
        "decode was captured: there is none",
        "decode, round 1: the graph gives other bytes than its launches",
    ]
    assert len(set(seen)) == 3


JAX_JOB = [sys.executable, GPU / "clients" / "jax_job.py"]


def test_the_jax_job_gives_numpys_numbers() -> None:
    pytest.importorskip("jax")
    done = subprocess.run([*JAX_JOB, "--cpu", "--loops"], capture_output=True, text=True, check=True)
    assert len({line.split()[-1] for line in done.stdout.splitlines()}) == 15


def test_the_jax_job_does_without_no_gpu_unasked() -> None:
    pytest.importorskip("jax")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(JAX_JOB, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "finds no GPU" in done.stderr
