"""Measure how much of a torch decode job's start a restore saves, and that what it gives back is the same.

    python benchmarks/decode_job.py [--runs 5] [--keep]

Runs the reference decode job (28 layers, 35 batch sizes) plainly, under `foundry capture`, and under `foundry restore`
several times, each in a process of its own (the first restore to the job's end, the others until it is ready), and
writes `decode-job-<machine class>.json`.

The job's attention comes from cuDNN, whose results differ in the last bits from call to call, in plain torch too. So a
second, steady job without cuDNN's attention shows equality of all bits; of the job as it is, only the share of other
tokens is compared with plain torch's own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
JOB = ROOT / "tests" / "gpu" / "decode_job_foundry.py"
sys.path.insert(0, str(JOB.parent))

from measuring import machine, results  # noqa: E402
from measuring.figures import BYTES, SECONDS, figure, spread  # noqa: E402
from measuring.question import Answer, Asked, Question  # noqa: E402
from scenarios import FOUNDRY, run, strange, strangers, unequal  # noqa: E402

READY_LIMIT, ARCHIVE_LIMIT, REPLAY_LIMIT = 0.05, 8e6, 1.01
REPLAY_RATIOS = {"median": "ratio", "99th percentile": "p99_ratio"}
REPLAYS = {
    "captured": "captured_ms",
    "restored": "given_ms",
    "captured, 99th percentile": "captured_p99_ms",
    "restored, 99th percentile": "given_p99_ms",
}
PREPARATION = ("image_check", "ready")
"""Timings of the hook that make up getting modules and graphs ready: the check of the image, and the wall time from the
first work of the background threads until the last graph was built. The other timings are sums over threads."""


def measure(folder: Path, restores: int) -> dict[str, Any]:
    """Run the job in all ways. `figures.json` in the folder is rewritten after each run."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "job.fdry"
    figures: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine.facts(),
        "command": "python benchmarks/decode_job.py",
        "restores": [],
    }

    def keep(name: str, program: list[Any]) -> dict[str, Any]:
        out = folder / f"{name}.json"
        begin = time.perf_counter()
        run(folder, name, [*program, "--out", out], timeout=200)
        result: dict[str, Any] = json.loads(out.read_text())
        result["wall_seconds"] = time.perf_counter() - begin
        return result

    def save() -> None:
        (folder / "figures.json").write_text(json.dumps(figures, indent=1))

    program = [sys.executable, JOB]
    figures["plain"] = keep("plain", [*program, "--eager"])
    save()
    figures["capture"] = keep("capture", [*FOUNDRY, "capture", "-f", "-o", archive, "--", *program])
    figures["archive_bytes"] = archive.stat().st_size
    save()
    restore = [*FOUNDRY, "restore", "--allow", "mismatch-arguments"]  # it writes to another file
    for index in range(restores):
        report = folder / f"report-{index}.json"
        more = ["--start-only"] if index else ["--versus"]
        command = [*restore, archive, "--report", report, "--", *program, *more]
        result = keep(f"restore-{index}", command)
        result["report"] = json.loads(report.read_text())
        figures["restores"].append(result)
        save()
    steady = [*program, "--steady", "--replays", "5"]
    archive = folder / "steady.fdry"
    figures["steady"] = {
        "plain": keep("steady-plain", [*steady, "--eager"]),
        "capture": keep("steady-capture", [*FOUNDRY, "capture", "-f", "-o", archive, "--", *steady]),
        "restore": keep("steady-restore", [*restore, archive, "--", *steady]),
    }
    save()
    return figures


def compared(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return (name, result, plain result to compare with) of every run."""
    plain, steady = figures["plain"], figures["steady"]
    runs = [("plain", plain, plain), ("capture", figures["capture"], plain)]
    runs += [(f"restore {index}", result, plain) for index, result in enumerate(finished_jobs(figures))]
    return runs + [(f"steady {name}", result, steady["plain"]) for name, result in steady.items()]


def finished_jobs(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the restores that ran to the job's end."""
    return [result for result in figures["restores"] if "digests" in result]


def short(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures that answer the question."""
    restores = figures["restores"]
    processes = [result["report"]["processes"][0] for result in restores]
    plain, capture = figures["plain"], figures["capture"]
    whole = finished_jobs(figures)
    versus = {size: entry for result in whole for size, entry in result.get("versus", {}).items()}
    ratios = {
        name: [entry[field] for entry in versus.values() if field in entry] for name, field in REPLAY_RATIOS.items()
    }
    names = sorted({name for process in processes for name in process["seconds"]})
    return {
        "machine": figures["machine"],
        "date": figures["date"],
        "graphs": len(plain["digests"]),
        "archive_bytes": figures["archive_bytes"],
        "plain_graphs_seconds": plain["phases"]["graphs"],
        "capture_graphs_seconds": capture["phases"]["graphs"],
        "restore_prepared_seconds": spread(
            [sum(process["seconds"].get(name, 0) for name in PREPARATION) for process in processes]
        ),
        "restore_waited_seconds": spread([result["totals"]["graphs_blocked_ns"] / 1e9 for result in restores]),
        "hook_seconds": {name: spread([process["seconds"].get(name, 0) for process in processes]) for name in names},
        "ready_seconds": {
            "plain": plain["ready_seconds"],
            "restore": spread([result["ready_seconds"] for result in restores]),
        },
        "first_replay_ms": spread([statistics.mean(result["first_replay_ms"].values()) for result in whole]),
        "replay_ratio_same_process": {
            name: {"median": statistics.median(found), "most": max(found)} for name, found in ratios.items() if found
        },
        "replay_ms": {
            size: {name: entry[field] for name, field in REPLAYS.items() if field in entry}
            for size, entry in versus.items()
        },
        "steady_job_bit_equal": not any(
            unequal(result, reference) for _, result, reference in compared(figures) if reference["steady"]
        ),
        "share_of_other_tokens": {
            "plain_against_itself": strangers(plain["eager_digests_again"], plain),
            "restored": spread([strangers(result["digests"], plain) for result in whole]),
        },
        "warm_ups_and_captures_run": sum(
            result["totals"]["warm_ups_run"] + result["totals"]["captures_run"] for result in restores
        ),
    }


def failures(figures: dict[str, Any]) -> list[str]:
    """Say which limits the figures miss, and what is not equal."""
    found = []
    figure = short(figures)
    for name, result, reference in compared(figures):
        wrong = unequal(result, reference) if reference["steady"] else []
        if wrong:
            found.append(f"{name}: differs from plain eager torch at sizes {', '.join(wrong)}")
        elif strange(result, reference):
            found.append(f"{name}: other tokens than plain eager torch's")
    steady = figures["steady"]["plain"]
    if steady["eager_digests"] != steady["eager_digests_again"]:
        found.append("plain torch disagrees with itself in the steady job")
    for index, result in enumerate([*figures["restores"], figures["steady"]["restore"]]):
        if result["restored"] != figure["graphs"]:
            found.append(f"restore {index}: {result['restored']} of {figure['graphs']} graphs: {result['reasons']}")
    if figure["warm_ups_and_captures_run"]:
        found.append(f"{figure['warm_ups_and_captures_run']} warm-ups and captures ran in restored processes")
    waited = figure["restore_waited_seconds"]["median"]
    if waited > READY_LIMIT:
        found.append(f"the program waited {waited:.3f} s for modules and graphs, the limit is {READY_LIMIT} s")
    if figure["archive_bytes"] > ARCHIVE_LIMIT:
        found.append(
            f"the archive has {figure['archive_bytes'] / 1e6:.1f} MB, the limit is {ARCHIVE_LIMIT / 1e6:.0f} MB"
        )
    for table in (result["versus"] for result in figures["restores"] if "versus" in result):
        for name, field in REPLAY_RATIOS.items():
            slow = [
                f"{size}: {entry[field]:.3f}" for size, entry in table.items() if entry.get(field, 0) > REPLAY_LIMIT
            ]
            if slow:
                found.append(f"replays slower than a captured graph's in the same process, {name}: {', '.join(slow)}")
    return found


def compared_by(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give those of the short figures that a later result is compared by."""
    times = {
        "the program stands still for its graphs": made["restore_waited_seconds"],
        "modules and graphs are made ready": made["restore_prepared_seconds"],
        "restored process until ready": made["ready_seconds"]["restore"],
    }
    return {
        **{name: {"unit": SECONDS, **values} for name, values in times.items()},
        "archive": figure([made["archive_bytes"]], BYTES),
    }


def write(figures: dict[str, Any], folder: Path) -> Path:
    """Write the short figures of runs that no calibration goes with."""
    return results.write(folder, "decode-job", {"command": figures["command"], **short(figures)})


def answer(asked: Asked) -> Answer:
    """Measure, and hold the figures against their limits."""
    figures = measure((asked.options.folder or asked.folder).resolve(), asked.runs)
    made = short(figures)
    return Answer(compared_by(made), {"graphs": made["graphs"]}, made, failures(figures))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say where the runs leave what they write."""
    parser.add_argument("--folder", type=Path, help="where logs and archive go; a temporary folder if left out")
    parser.set_defaults(sim=False)


QUESTION = Question(
    "decode-job",
    "how much of a torch decode job's start does a restore save, and is what it gives back the same",
    answer, 5, add_options,
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(QUESTION.main())
