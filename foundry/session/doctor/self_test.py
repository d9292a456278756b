"""The hook's own test: a small program is captured, restored and compared, by the commands that a user would type."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import foundry
from foundry import env
from foundry.launch import environment as launch_environment
from foundry.session.doctor.check import GPU, SIMULATOR, Check, bad, good

SECONDS = 10.0
PROGRAM = (sys.executable, "-m", "foundry.selftest")
COMMAND = (sys.executable, "-m", "foundry")
TITLE = "self test"


class Failed(Exception):
    """A step of the test did not do what it should."""


def run(environment: Mapping[str, str], *, device: bool, seconds: float = SECONDS) -> Check:
    """Run the test on the simulator, or on the first GPU, within the time limit."""
    where = "GPU 0" if device else "the simulator"
    stops = (GPU,) if device else (GPU, SIMULATOR)
    begin = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="foundry-test-", ignore_cleanup_errors=True) as folder:
            graphs = _test(Path(folder), environment, device=device, deadline=begin + seconds)
    except Failed as error:
        hint = "please report it, with what `foundry doctor --json` prints"
        return bad(TITLE, f"on {where}: {error}", hint, stops)
    except OSError as error:
        return bad(TITLE, f"on {where}: cannot be run: {error}", "make room in the temporary folder", stops)
    return good(TITLE, f"on {where}: {graphs} graphs captured, packed, restored and equal")


def _test(folder: Path, base: Mapping[str, str], *, device: bool, deadline: float) -> int:
    kind = [] if device else ["--sim"]
    archive, report = folder / "test.fdry", folder / "report.json"
    plain = launch_environment.plain(base)
    around = {name: value for name, value in plain.items() if not name.startswith("FOUNDRY_SIM_")}
    package = str(Path(foundry.__file__).absolute().parents[1])
    around["PYTHONPATH"] = ":".join([package, *filter(None, [plain.get("PYTHONPATH", "")])])
    around["XDG_CACHE_HOME"] = around["TMPDIR"] = str(folder)
    # Two seeds: the simulator then gives other handles, so that nothing fits by luck.
    captured = _step(
        "capture",
        [*COMMAND, "capture", "-q", "--no-caches", *kind, "-o", str(archive), "--", *PROGRAM],
        {**around, env.SIMULATOR_SEED: "1"},
        folder,
        deadline,
    )
    restored = _step(
        "restore",
        [*COMMAND, "restore", "-q", "--no-caches", *kind, "--report", str(report), str(archive), "--", *PROGRAM],
        {**around, env.SIMULATOR_SEED: "2"},
        folder,
        deadline,
    )
    return _compare(captured, restored, report)


def _step(what: str, words: list[str], environment: Mapping[str, str], folder: Path, deadline: float) -> dict[str, Any]:
    """Run a command; what it prints is the program's one JSON object."""
    with _started(words, environment, folder) as process:
        try:
            out, told = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failed(f"the {what} took too long") from None
    if process.returncode != 0:
        raise Failed(f"the {what} ended with {process.returncode}: {_reason(told.decode(errors='replace'))}")
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        raise Failed(f"the {what} printed what it should not: {out[:60]!r}") from None
    if not answer.get("right"):
        raise Failed(f"a graph of the {what} computed something else than the same work without a graph")
    return answer


def _reason(said: str) -> str:
    """Pick what the program itself said last; what foundry says of that only tells its exit status."""
    lines = [line for line in map(str.strip, said.splitlines()) if line]
    own = [line for line in lines if not line.startswith(("foundry: ", "hint: "))]
    return [*lines, *own][-1] if lines else "it said nothing"


@contextlib.contextmanager
def _started(words: list[str], environment: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        words,
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            # The keeper then ends the program.
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=2)


def _compare(captured: dict[str, Any], restored: dict[str, Any], report: Path) -> int:
    results = captured.get("results")
    count = len(results) if isinstance(results, dict) else 0
    if captured.get("restored") or not count:
        raise Failed("the capture did not run as it should")
    if restored.get("restored") != count:
        told = restored.get("reasons") or _disarmed(report) or "no reason was given"
        raise Failed(f"{restored.get('restored')} of {count} graphs were restored: {told}")
    if restored.get("results") != results:
        raise Failed("the restored graphs computed something else than the captured ones")
    return count


def _disarmed(report: Path) -> str:
    try:
        told = json.loads(report.read_bytes())
        return str(told.get("disarmed") or told.get("started_without_restore") or "")
    except (OSError, ValueError):
        return ""
