"""What is tried on a real GPU: each scenario runs a program plainly, under capture and under restore, and compares.

A scenario takes a folder for its files and raises AssertionError or subprocess.TimeoutExpired. Needs nothing of pytest,
so that `run_all.py` works where that is not installed. What a program printed lies in the folder: NAME.log, NAME.out.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SERVER = HERE.parent / "engines" / "decode_server.py"
FOUNDRY = [sys.executable, "-m", "foundry"]


def run(folder: Path, name: str, command: list[Any], *, timeout: float = 240, **more: Any) -> str:
    """Run a command in the folder, with its output in NAME.log; return its stdout.

    Any exit but 0 fails with the end of the log. The folder also keeps a source checkout out of the way of the
    installed package.
    """
    folder.mkdir(parents=True, exist_ok=True)
    print(f"  {name} ...", flush=True)
    begin = time.monotonic()
    with (folder / f"{name}.log").open("w") as log, (folder / f"{name}.out").open("w+") as out:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **more}
        log.write(f"$ {' '.join(map(str, command))}\n")
        log.flush()
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=log, env=environment, cwd=folder)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
        out.seek(0)
        text = out.read()
    seconds = time.monotonic() - begin
    print(f"  {name}: exit {code} after {seconds:.1f} s", flush=True)
    tail = "\n".join((folder / f"{name}.log").read_text(errors="replace").splitlines()[-25:])
    assert code == 0, f"{name} ended with {code}:\n{tail}"
    return text


OTHER_FILES = ("--allow", "mismatch-arguments")
"""The programs are told another file to write to, or another way to serve, which reaches no graph."""


def three_ways(
    folder: Path,
    program: list[Any],
    *,
    plain_only: list[Any] | None = None,
    capture_flags: Sequence[str] = (),
    restore_flags: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """Run a program that takes `--out FILE` plainly, under capture, under restore; return the results and more."""
    found: dict[str, Any] = {}
    archive, report = folder / "job.fdry", folder / "report.json"
    prefixes: dict[str, list[Any]] = {
        "plain": [],
        "capture": [*FOUNDRY, "capture", *capture_flags, "-f", "-o", archive, "--"],
        "restore": [*FOUNDRY, "restore", *restore_flags, *OTHER_FILES, archive, "--report", report, "--"],
    }
    for name, prefix in prefixes.items():
        out = folder / f"{name}.json"
        run(folder, name, [*prefix, *program, *((plain_only or []) if name == "plain" else []), "--out", out], **more)
        found[name] = json.loads(out.read_text())
    found["report"] = json.loads(report.read_text())
    found["archive_bytes"] = archive.stat().st_size
    return found


def check_nothing_ran(found: dict[str, Any], graphs: int) -> None:
    """No warm-up and no capture may have run in the restored process, by its own totals and by the hook's."""
    restored = found["restore"]
    assert restored["restored"] == graphs, f"{restored['restored']} of {graphs} restored: {restored['reasons']}"
    totals = restored["totals"]
    assert (totals["warm_ups_run"], totals["captures_run"]) == (0, 0), totals
    assert (totals["captures_skipped"], totals["warm_ups_skipped"] >= graphs) == (graphs, True), totals
    assert found["report"]["counters"].get("stream_captures", 0) == 0, found["report"]["counters"]


def unequal(found: dict[str, Any], plain: dict[str, Any]) -> list[str]:
    """Return the sizes of a steady job whose tokens or written cache rows are not plain eager torch's, bit for bit."""
    given, wanted = found["digests"], plain["eager_digests"]
    return [size for size in wanted if given.get(size) != wanted[size]]


def strangers(found: dict[str, list[dict[str, Any]]], plain: dict[str, Any]) -> float:
    """Return the share of tokens that are not plain eager torch's.

    cuDNN's attention gives other last bits from call to call on the same inputs, so in the job as it is plain torch
    disagrees with itself about some tokens, and no two runs can be compared bit for bit.
    """
    total = different = 0
    for size, pair in plain["eager_digests"].items():
        for one, other in itertools.zip_longest(pair, found.get(size, []), fillvalue={"tokens": []}):
            total += len(one["tokens"])
            different += sum(a != b for a, b in itertools.zip_longest(one["tokens"], other["tokens"]))
    return different / total


def strange(found: dict[str, Any], plain: dict[str, Any]) -> bool:
    """Tell whether a run has clearly more other tokens than plain torch has against itself."""
    own = strangers(plain["eager_digests_again"], plain)
    return found["digests"].keys() != plain["eager_digests"].keys() or strangers(found["digests"], plain) > (
        3 * own + 0.005
    )


def check_job(found: dict[str, Any], sizes: int) -> None:
    """The decode job gives plain eager torch's results on fresh inputs: all bits in the steady job."""
    plain = found["plain"]
    for name in ("plain", "capture", "restore"):
        assert found[name]["finished"], name
        assert len(found[name]["digests"]) == sizes
        if plain["steady"]:
            wrong = unequal(found[name], plain)
            assert not wrong, f"{name} differs from plain eager torch at sizes {', '.join(wrong)}"
        assert not strange(found[name], plain), f"{name} has other tokens than plain eager torch"
    if plain["steady"]:
        assert plain["eager_digests_again"] == plain["eager_digests"], "plain torch disagrees with itself"
    digests = [one["cache"] for pair in plain["digests"].values() for one in pair]
    assert len(set(digests)) == len(digests), "digests do not depend on the inputs"
    check_nothing_ran(found, sizes)


def decode_job_small(folder: Path) -> dict[str, Any]:
    """Two layers, four sizes, as it is."""
    program = [sys.executable, HERE / "decode_job_foundry.py", "--layers", 2, "--sizes", "1,4,64,256", "--replays", 5]
    found = three_ways(folder, program, plain_only=["--eager"])
    check_job(found, 4)
    return found


def decode_job_steady(folder: Path) -> dict[str, Any]:
    """All layers and sizes without cuDNN's attention: tokens and written cache rows are equal bit for bit."""
    program = [sys.executable, HERE / "decode_job_foundry.py", "--steady", "--replays", 5]
    found = three_ways(folder, program, plain_only=["--eager"])
    check_job(found, 35)
    return found


def _torch_case(folder: Path, case: str) -> dict[str, Any]:
    found = three_ways(folder, [sys.executable, HERE / "torch_job.py", case])
    for name in ("capture", "restore"):
        assert found[name]["values"] == found["plain"]["values"], f"{name} differs from plain torch"
    return found


def random_numbers(folder: Path) -> dict[str, Any]:
    """Random numbers inside graphs follow torch's generator."""
    found = _torch_case(folder, "random")
    check_nothing_ran(found, 3)
    return found


def nested_outputs(folder: Path) -> dict[str, Any]:
    """Outputs keep nesting, constants and shared memory."""
    found = _torch_case(folder, "nested")
    check_nothing_ran(found, 1)
    return found


def matrix_products(folder: Path) -> dict[str, Any]:
    """cuBLAS workspaces of warm-up, capture and eager calls do not meet."""
    found = _torch_case(folder, "products")
    check_nothing_ran(found, 4)
    return found


def moved_input(folder: Path) -> dict[str, Any]:
    """A program whose memory lies elsewhere is captured anew, with a reason."""
    found = _torch_case(folder, "moved")
    assert found["restore"]["restored"] == 0
    assert found["restore"]["totals"]["captures_run"] == 1
    assert found["restore"]["reasons"] or found["report"]["disarmed"], "no reason was given"
    return found


def refused_graphs(folder: Path) -> dict[str, Any]:
    """Outputs that an archive can't hold are refused by name; the graph beside them is restored."""
    found = _torch_case(folder, "refused")
    assert found["restore"]["restored"] == 1, found["restore"]["reasons"]
    assert set(found["restore"]["reasons"]) == {"set", "shape"}
    return found


def witnesses(folder: Path) -> dict[str, Any]:
    """A restore is checked against witnesses; a changed constant in one graph is found before it is used."""
    from tampering import with_constant

    from foundry import archive

    program = [sys.executable, HERE / "torch_job.py", "witnessed"]
    found = three_ways(folder, program, capture_flags=["--witness"], restore_flags=["--check"])
    for name in ("capture", "restore"):
        assert found[name]["values"] == found["plain"]["values"], f"{name} differs from plain torch"
    check_nothing_ran(found, 4)
    assert found["report"]["witnesses"] == {
        "checked": 4, "equal": 4, "differs": 0, "missing": 0, "unsteady": 0, "state": 0,
    }, found["report"]["witnesses"]  # fmt: skip
    damaged, report, out = folder / "damaged.fdry", folder / "damaged.report.json", folder / "damaged.json"
    scale, wrong = struct.pack("<f", 3.25), struct.pack("<f", 2.5)
    archive.write(with_constant(archive.read(folder / "job.fdry"), "8", "", scale, wrong), damaged, force=True)
    command = [*FOUNDRY, "restore", "--check", *OTHER_FILES, damaged, "--report", report, "--", *program, "--out", out]
    run(folder, "damaged", command)
    result, told = json.loads(out.read_text()), json.loads(report.read_text())
    assert result["values"] == found["plain"]["values"], "a damaged archive changed the results"
    assert result["restored"] == 3, result["reasons"]
    assert result["reasons"]["8"].startswith("witness-differs: "), result["reasons"]
    assert (told["witnesses"]["equal"], told["witnesses"]["differs"]) == (3, 1), told["witnesses"]
    damaged.unlink()
    return found


def demo_server(folder: Path, *flags: str) -> dict[str, Any]:
    """The demo's server gives equal tokens eagerly, plainly, under capture and under restore, and over HTTP.

    `flags` go to both commands: `--sim`, where the simulator is this process's driver as well.
    """
    archive, report = folder / "demo.fdry", folder / "report.json"
    once = [sys.executable, SERVER, "--once"]
    eager = run(folder, "eager", [*once, "--eager"])
    plain = run(folder, "plain", once)
    captured = run(folder, "capture", [*FOUNDRY, "capture", *flags, "-f", "-o", archive, "--", *once])
    restored = run(folder, "restore", [*FOUNDRY, "restore", *flags, archive, "--report", report, "--", *once])
    assert eager == plain == captured == restored, "tokens differ"
    counters = json.loads(report.read_text())["counters"]
    assert (counters.get("captures_run", 0), counters.get("captures_skipped", 0)) == (0, 5), counters
    lines = [json.loads(line) for line in plain.splitlines()]
    with (folder / "serve.log").open("w") as log:
        command = [*FOUNDRY, "restore", *flags, *OTHER_FILES, archive, "--", sys.executable, SERVER, "--port", "0"]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder)
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            assert process.stdout.readline().strip() == "ready"
            for line in lines[:3]:
                body = json.dumps({"prompt": line["prompt"], "tokens": len(line["tokens"])}).encode()
                with urllib.request.urlopen(f"{address}/generate", body, timeout=30) as answer:
                    assert json.load(answer)["tokens"] == line["tokens"]
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(30)
    assert code == 0, f"the server ended with {code}"
    return {"report": json.loads(report.read_text()), "archive_bytes": archive.stat().st_size}


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        demo_server, nested_outputs, matrix_products, random_numbers, moved_input, refused_graphs, witnesses,
        decode_job_small,
        decode_job_steady,
    )
}  # fmt: skip
