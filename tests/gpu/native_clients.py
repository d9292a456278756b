"""Other people's clients of the driver: JAX, CuPy, cuda.core, and a program with the CUDA runtime linked in.

    python tests/gpu/run_all.py OUT_DIR samples_client cupy_client core_client jax_client jax_loops_client

Each runs plainly, under capture and under restore. What it prints, digests of what its graphs gave for other inputs in
each round, must be the same. `inspect` must show its graphs, each restorable or with the reason why not, and its
kernels. A client that is not installed is skipped by name.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import scenarios
from scenarios import FOUNDRY

CLIENTS = Path(__file__).resolve().parent / "clients"
RESTORED, CAPTURED = "restored", "captured"
REFUSED_SAMPLES = {"updated": "exec-changed", "memory": "node-unsupported", "host": "node-unsupported"}
"""Graphs of samples.cu that an archive can't give back, and why."""
UPDATED = ("moved", "updated")
"""Those that change a value half way."""
TOOLKITS = ("CUDA_HOME", "CUDA_PATH")
NO_GRAPHS = "mismatch-no-graphs"
"""Why an archive is not used whose graphs were all refused, each by name."""
LONGEST = 90
"""Seconds for one run of a client."""


def run(folder: Path, name: str, command: list[Any]) -> str:
    """Run a command as scenarios do, for no longer than a client may take."""
    return scenarios.run(folder, name, command, timeout=LONGEST)


def installed(module: str) -> bool:
    """Tell whether a module can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def facts(folder: Path, name: str) -> dict[str, str]:
    """Read what a client said of its graphs on stderr."""
    lines = (folder / f"{name}.log").read_text(errors="replace").splitlines()
    found: dict[str, str] = json.loads([line for line in lines if line.startswith("facts ")][-1].removeprefix("facts "))
    return found


def graphs_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Count an archive's graphs. One that can't be restored has a reason, and one that can has none."""
    rows = list(rows)
    assert rows, "no graph is in the archive"
    for row in rows:
        assert row["restorable"] == (not row["reason_code"]) == (not row["reason"]), row
        assert row["nodes"] > 0, row
    refused = [row for row in rows if not row["restorable"]]
    return {
        "stored": len(rows),
        "restorable": len(rows) - len(refused),
        "without a name": sum(not row["set"] for row in rows),
        "refused": dict(Counter(row["reason_code"] for row in refused)),
        "reasons": {row["reason_code"]: row["reason"] for row in reversed(refused)},
    }


def in_three_ways(folder: Path, program: Sequence[Any], *flags: str, kernels: Iterable[str] = ()) -> dict[str, Any]:
    """Run a client plainly, captured and restored; compare what it prints; return what foundry says of its graphs.

    `flags` go to both commands. `kernels` are names that must stand in the archive.
    """
    archive, report = folder / "client.fdry", folder / "report.json"
    plain = run(folder, "plain", program)
    assert plain.splitlines(), "the client printed nothing"
    captured = run(folder, "capture", [*FOUNDRY, "capture", *flags, "-f", "-o", archive, "--", *program])
    assert captured == plain, "captured, it gives another output"
    views = {
        view: json.loads(run(folder, f"inspect-{view}", [*FOUNDRY, "inspect", "--json", f"--{view}", archive]))
        for view in ("graphs", "kernels")
    }
    restored = run(folder, "restore", [*FOUNDRY, "restore", *flags, archive, "--report", report, "--", *program])
    assert restored == plain, "restored, it gives another output"
    told = json.loads(report.read_text())
    names = sorted({kernel["short"] for kernel in views["kernels"]["kernels"]})
    found: dict[str, Any] = {
        "rows": views["graphs"]["graphs"],
        "kernels": names,
        "restored": told["graphs_restored"],
        "captured_anew": told["counters"].get("graphs_instantiated", 0),
        "lines": len(plain.splitlines()),
        "archive_bytes": archive.stat().st_size,
    }
    (folder / "figures.json").write_text(json.dumps(found, indent=1))  # also if they are not as they should be
    if any(row["restorable"] for row in found["rows"]):
        expected: list[str] = []
    else:
        expected = [NO_GRAPHS]
        assert all(row["reason"] for row in found["rows"]), "a graph is refused without a reason"
    assert (told["error"], told["disarmed"]) == (None, {}), told
    assert [difference["code"] for difference in told["differences"]] == expected, told
    missing = [name for name in kernels if name not in names]
    assert names, "inspect shows no kernel"
    assert not missing, f"inspect does not show {', '.join(missing)}, only {', '.join(names)}"
    return {**found, "graphs": graphs_of(found["rows"])}


def figures_of(found: dict[str, Any]) -> dict[str, Any]:
    """Keep what goes into the summary."""
    return {"figures": {name: value for name, value in found.items() if name != "rows"}}


def skipped(what: str) -> dict[str, Any]:
    """Say what is not there."""
    return {"skipped": f"{what} is not installed"}


def jax_client(folder: Path, *arguments: str) -> dict[str, Any]:
    """XLA's command buffers: no name reaches them, so JAX has them built anew; nothing may fail or differ."""
    if not installed("jax"):
        return skipped("jax")
    found = in_three_ways(folder, [sys.executable, CLIENTS / "jax_job.py", *arguments])
    assert found["graphs"]["without a name"] == found["graphs"]["stored"], found["graphs"]
    assert found["restored"] == 0, found
    return figures_of(found)


def jax_loops_client(folder: Path) -> dict[str, Any]:
    """The same with a loop within a command buffer, which XLA makes of conditional nodes or of several graphs."""
    return jax_client(folder, "--loops")


def _named_client(folder: Path, program: Sequence[Any], *flags: str, kernels: Iterable[str]) -> dict[str, Any]:
    """Run a client whose graphs go through `foundry.graphs`, but one without a name: all that have one come back."""
    found = in_three_ways(folder, program, *flags, kernels=kernels)
    names = [row["key"] for row in found["rows"] if row["set"]]
    assert names, "no graph has a name"
    assert found["graphs"]["without a name"] == 1, found["graphs"]
    assert found["graphs"]["refused"] == {}, found["graphs"]
    for way, became in (("plain", CAPTURED), ("capture", CAPTURED), ("restore", RESTORED)):
        assert facts(folder, way) == dict.fromkeys(names, became), (way, facts(folder, way))
    assert (found["restored"], found["captured_anew"]) == (len(names), 1), found
    return figures_of(found)


def cupy_client(folder: Path, *flags: str) -> dict[str, Any]:
    """CuPy's graphs come back where two lines name them, and are launched with new inputs."""
    if not installed("cupy"):
        return skipped("cupy")
    return _named_client(folder, [sys.executable, CLIENTS / "cupy_job.py"], *flags, kernels=("mix", "combine"))


def core_client(folder: Path, *flags: str, image: Path | None = None) -> dict[str, Any]:
    """Those of cuda.core likewise. `image`: kernels for a driver that takes no cubin."""
    if not installed("cuda.core"):
        return skipped("cuda.core")
    program = [sys.executable, CLIENTS / "core_job.py", *(["--image", image] if image else [])]
    return _named_client(folder, program, *flags, kernels=("mix", "combine"))


def nvcc() -> str | None:
    """Find the compiler: on PATH, else of a toolkit."""
    roots = [*(os.environ[name] for name in TOOLKITS if os.environ.get(name)), "/usr/local/cuda"]
    return shutil.which("nvcc") or next(
        (str(path) for path in (Path(root) / "bin" / "nvcc" for root in roots) if path.is_file()), None
    )


def architecture() -> str:
    """Name this GPU's for nvcc, which can tell itself only where all of a toolkit is there."""
    told = shutil.which("nvidia-smi")
    words = [told, "--query-gpu=compute_cap", "--format=csv,noheader"]
    done = subprocess.run(words, capture_output=True, text=True, check=False) if told else None
    found = re.match(r"(\d+)\.(\d+)", done.stdout) if done else None
    return f"sm_{found[1]}{found[2]}" if found else "native"


def build_samples(folder: Path, compiler: str) -> Path:
    """Compile samples.cu for this GPU, with the runtime linked in and per-thread default streams."""
    import foundry

    program = folder / "samples"
    flags = [
        "-cudart",
        "static",
        "--default-stream",
        "per-thread",
        f"-arch={architecture()}",
        "-I",
        foundry.get_include(),
    ]
    run(folder, "nvcc", [compiler, *flags, "-o", program, CLIENTS / "samples.cu", "-ldl"])
    return program


def samples_client(folder: Path, *flags: str, program: Path | None = None) -> dict[str, Any]:
    """A program as the CUDA samples are, which labels its graphs with `foundry.h`.

    Restored ones are launched, one of them after an update in place; what can't be restored is captured anew.
    """
    if program is None:
        compiler = nvcc()
        if compiler is None:
            return skipped("nvcc")
        program = build_samples(folder, compiler)
    found = in_three_ways(folder, [program], *flags, kernels=("mix", "combine"))
    refused = {row["key"]: row["reason_code"] for row in found["rows"] if row["set"] and row["reason_code"]}
    assert refused == REFUSED_SAMPLES, refused
    names = [row["key"] for row in found["rows"] if row["set"]]
    changed = {name: f"{CAPTURED}, updated in place" if name in UPDATED else CAPTURED for name in names}
    assert facts(folder, "plain") == changed, facts(folder, "plain")
    assert facts(folder, "capture") == changed | {"moved": f"{CAPTURED}, another beside it"}, facts(folder, "capture")
    back = {name: RESTORED for name in names if name not in REFUSED_SAMPLES}
    became = facts(folder, "restore")
    # A driver may refuse to update an exec that the engine has built; the program then makes another.
    found["moved"] = became.pop("moved")
    assert found["moved"].startswith((f"{RESTORED}, updated in place", f"{RESTORED}, not updated")), found["moved"]
    in_place = found["moved"].endswith("in place")
    del back["moved"]
    assert became == {name: how for name, how in changed.items() if name != "moved"} | back, became
    assert found["restored"] == len(back) + 1, found
    assert found["captured_anew"] == len(REFUSED_SAMPLES) + (not in_place), found
    return figures_of(found)


NATIVE_CLIENTS = {
    client.__name__: client for client in (samples_client, cupy_client, core_client, jax_client, jax_loops_client)
}
