#!/usr/bin/env python3
"""Show foundry at work on the simulator: capture a small server, look into the archive, restore the server from it.

Ends with an error if any output differs, or if the restored server warmed up or captured anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SERVER = Path(__file__).resolve().parent / "decode_server.py"
FOUNDRY = [sys.executable, "-m", "foundry"]


@dataclass(frozen=True)
class Step:
    """A command that was run, and what came of it."""

    output: str
    seconds: float


class Failure(Exception):
    """A step that did not do what the demo shows."""


def run(console: Console, folder: Path, shown: str, command: list[Any], **more: str) -> Step:
    """Run a command in the folder and return its output; anything but exit 0 ends the demo."""
    console.print(f"[bold cyan]$ {shown}[/]", highlight=False)
    begin = time.perf_counter()
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env={**os.environ, **more}, cwd=folder
    )
    if done.stderr.strip():
        console.print(done.stderr.strip(), style="dim", highlight=False, markup=False)
    if done.returncode != 0:
        raise Failure(f"`{shown}` ended with {done.returncode}\n{done.stdout[-2000:]}")
    return Step(done.stdout, time.perf_counter() - begin)


def demonstrate(console: Console, folder: Path) -> None:
    """Run the three commands and compare."""
    archive, report = folder / "demo.fdry", folder / "report.json"
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    server = [sys.executable, SERVER, "--once"]
    shown = "python decode_server.py --once"
    # Two seeds: the simulator then gives other handles and addresses, so that nothing fits by luck.
    capture = run(
        console,
        folder,
        f"foundry capture --sim -o demo.fdry -- {shown}",
        [*FOUNDRY, "capture", "--sim", "-f", "-o", archive, "--", *server],
        FOUNDRY_SIM_SEED="1",
    )
    inspect = run(console, folder, "foundry inspect demo.fdry", [*FOUNDRY, "inspect", archive])
    console.print(inspect.output.rstrip(), highlight=False, markup=False)
    restore = run(
        console,
        folder,
        f"foundry restore --sim demo.fdry --report report.json -- {shown}",
        [*FOUNDRY, "restore", "--sim", archive, "--report", report, "--", *server],
        FOUNDRY_SIM_SEED="2",
    )
    told = json.loads(report.read_text())
    counters = told["counters"]
    equal = bool(capture.output) and capture.output == restore.output
    ran = counters.get("warm_ups_run", 0), counters.get("captures_run", 0)
    skipped = counters.get("warm_ups_skipped", 0), counters.get("captures_skipped", 0)

    table = Table(title="what the restore saved", title_style="bold")
    table.add_column("")
    table.add_column("restored server", justify="right")
    table.add_row("warm-ups", f"{skipped[0]} skipped, {ran[0]} run")
    table.add_row("graph captures", f"{skipped[1]} skipped, {ran[1]} run")
    table.add_row("graphs from the archive", f"{told['graphs_restored']} of {told['graphs_in_archive']}")
    prompts = len(capture.output.splitlines())
    table.add_row("outputs to the captured server's", f"{'equal' if equal else 'DIFFERENT'} for {prompts} prompts")
    table.add_row("archive", f"{archive.stat().st_size / 1024:.0f} KiB")
    console.print(table)
    console.print("simulated: real code on a simulated driver, no GPU; its times say nothing about one", style="dim")
    if not equal:
        raise Failure("the restored server made other tokens")
    if any(ran) or not all(skipped) or told["graphs_given_up"]:
        raise Failure(f"the restored server captured anew: {json.dumps(told, indent=1)}")


def main() -> int:
    """Run the demo."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="foundry-demo-") as folder:
        try:
            demonstrate(console, Path(folder))
        except Failure as failure:
            console.print(f"demo failed: {failure}", style="bold red", markup=False, highlight=False)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
