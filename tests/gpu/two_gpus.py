"""Memory shared between two processes by IPC handles: one GPU each, and both on one.

    python tests/gpu/run_all.py OUT_DIR two_gpus one_gpu_shared

`tests/native/hook_programs/sharing.c` is two ranks that do what engines' own all-reduce does: handles exchanged over a
pipe, opened, written and read from both sides, opened twice, closed, freed first by the owner, asked for after its end.
It runs plainly, captured and restored, and must say the same, but for the lines of `BY_DESIGN`: what else differs is a
fault of the hook, and what the plain run says otherwise than on the simulator is one of the simulator. Needs a C
compiler.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scenarios import FOUNDRY, OTHER_FILES, run

SCENARIOS = (
    *("exchange", "freed", "killed", "forked", "many", "leaks", "in-capture", "storm", "context", "refused"),
    "speed",
)
BY_DESIGN = {
    ("freed", "rank 1 anew 0"): (
        "rank 1 anew 1",
        "by a handle of freed memory the driver opens whatever lies there by now; the hook says that it is gone",
    ),
    ("forked", "rank 1 owner-gone 0 still 3"): (
        "rank 1 owner-gone 400 still 3",
        "with the driver a child of the owner keeps its memory; the hook asks the owner, and no child of it answers",
    ),
}
"""By scenario and line of a plain run: what is said under the hook in its place, and why."""
SLOWEST = 0.9
"""What copies under the hook must reach of the plain rate."""


def said(output: str) -> list[str]:
    """Give what does not depend on where a graph came from, nor on which of the two is faster."""
    lines = (line for line in output.splitlines() if line.startswith("rank"))
    return sorted(line for line in lines if line.split()[-1] not in ("captured", "restored"))


def expected(name: str, plain: Iterable[str]) -> list[str]:
    """Give what a scenario must say under the hook, by what it says plainly."""
    return sorted(BY_DESIGN.get((name, line), (line,))[0] for line in plain)


def rates(output: str) -> list[float]:
    """Give what each rank measured, writing and reading, in GB/s."""
    lines = sorted(line.split() for line in output.splitlines() if line.startswith("speed"))
    return [float(words[place]) for words in lines for place in (3, 5)]


def compile_sharing(folder: Path, *, simulated: bool) -> Path:
    """Compile the program against this machine's driver, or the simulator."""
    from helpers.native_build import PROGRAMS, compile_program, link_simulator

    folder.mkdir(parents=True, exist_ok=True)
    link = link_simulator() if simulated else ("-l:libcuda.so.1",)
    return compile_program(folder / "sharing", [PROGRAMS / "hook_programs" / "sharing.c"], *link)


def shared_memory(
    folder: Path, devices: int, scenarios: Iterable[str] = SCENARIOS, *, simulated: bool = False
) -> dict[str, Any]:
    """Run each scenario three times; what each says goes to the folder, and what was found is returned."""
    program, found = compile_sharing(folder, simulated=simulated), {}
    sim = ["--sim"] if simulated else []
    more = {"FOUNDRY_SIM_DEVICES": str(devices)} if simulated else {}
    for name in scenarios:
        command, archive = [program, name, devices], folder / f"{name}.fdry"
        environment = dict(more)
        if simulated:
            from foundry import native

            environment["LD_LIBRARY_PATH"] = str(native.simulator_directory())
        plain = run(folder, f"{name}-plain", command, timeout=120, **environment)
        captured = run(
            folder, f"{name}-capture", [*FOUNDRY, "capture", *sim, "-f", "-o", archive, "--", *command], **more
        )
        restored = run(
            folder, f"{name}-restore", [*FOUNDRY, "restore", *sim, *OTHER_FILES, archive, "--", *command], **more
        )
        rows = json.loads(run(folder, f"{name}-graphs", [*FOUNDRY, "inspect", "--json", "--graphs", archive]))["graphs"]
        found[name] = {
            "plain": said(plain),
            "said": {"captured": said(captured), "restored": said(restored)},
            "by_design": [
                reason for (of, line), (_, reason) in BY_DESIGN.items() if of == name and line in said(plain)
            ],
            "starts_restored": sum(line.endswith(" start restored") for line in restored.splitlines()),
            "graphs": {
                "restorable": sum(row["restorable"] for row in rows),
                "refused": sum("memory of another process" in row["reason"] for row in rows),
            },
            "rates": {"plain": rates(plain), "captured": rates(captured), "restored": rates(restored)},
        }
        (folder / "figures.json").write_text(json.dumps(found, indent=1))
    return found


def check(found: dict[str, Any]) -> dict[str, Any]:
    """Fail with all that is not as it should be."""
    problems = [problem for name in found for problem in other_answers(name, found[name])]
    problems += [
        f"{name}: {found[name]['starts_restored']} ranks restored" for name in found if not restored_in(found, name)
    ]
    if found["exchange"]["graphs"] != {"restorable": 4, "refused": 2}:
        problems.append(f"exchange: {found['exchange']['graphs']}")
    measured = found["speed"]["rates"]
    for how in ("captured", "restored"):
        for plain, hooked in zip(measured["plain"], measured[how], strict=True):
            if hooked < SLOWEST * plain:
                problems.append(f"{how}: {hooked} GB/s against {plain}")
    assert not problems, "; ".join(problems)
    return {"figures": found}


def other_answers(name: str, found: dict[str, Any]) -> list[str]:
    """List what a scenario says under the hook that it must not say, and what it does not say."""
    wanted = Counter(expected(name, found["plain"]))
    return [
        f"{name} {how}: {text} {line!r}"
        for how, lines in found["said"].items()
        for text, left in (("said", Counter(lines) - wanted), ("did not say", wanted - Counter(lines)))
        for line in left.elements()
    ]


def restored_in(found: dict[str, Any], name: str) -> bool:
    """Tell whether both ranks took their first graph from the archive; one that is killed is in it as well."""
    return bool(found[name]["starts_restored"] == 2)


def count_devices() -> int:
    """Ask the driver, in a process that uses it for nothing else."""
    count, driver = ctypes.c_int(), ctypes.CDLL("libcuda.so.1")
    return count.value if not driver.cuInit(0) and not driver.cuDeviceGetCount(ctypes.byref(count)) else 0


def two_gpus(folder: Path) -> dict[str, Any]:
    """One GPU a rank."""
    if count_devices() < 2 or not shutil.which("cc"):
        return {"skipped": "two GPUs and a C compiler are needed"}
    return check(shared_memory(folder, 2))


def one_gpu_shared(folder: Path) -> dict[str, Any]:
    """Both ranks on one GPU."""
    if not shutil.which("cc"):
        return {"skipped": "a C compiler is needed"}
    return check(shared_memory(folder, 1))
