"""Starts stand-ins of engines plainly, under capture and under restore, with the hook on the simulator."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from helpers.commandline import CommandLine

from foundry import archive, native

STAND_INS = Path(__file__).parents[1] / "engines" / "stand_ins"
RELEASES = "FOUNDRY_RELEASES"
"""Names folders with unpacked wheels of engines."""


def results(told: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only says how fast a start got there."""
    return {name: value for name, value in told.items() if name != "sooner"}


class Engine:
    """Runs the stand-in; each start at other handles."""

    def __init__(self, folder: Path, script: str) -> None:
        self.script = STAND_INS / script
        self.line = CommandLine(folder, native.library_directory())
        self.line.environment["PYTHONPATH"] += f":{STAND_INS}"
        self.seed = 0

    def _run(self, *words: object, **environment: str) -> Any:
        self.seed += 1
        environment["FOUNDRY_SIM_SEED"] = str(self.seed)
        done = self.line.run(*words, environment=environment)
        assert done.returncode == 0, done.stderr
        return done

    def _command(self, options: tuple[str, ...]) -> list[str]:
        return ["--", sys.executable, str(self.script), *options]

    def capture(self, *options: str, **environment: str) -> Any:
        done = self._run("capture", "--force", "--sim", "-o", "a.fdry", *self._command(options), **environment)
        return json.loads(done.stdout), done.stderr

    def restore(self, *options: str, words: tuple[str, ...] = (), **environment: str) -> Any:
        given = ("restore", "--sim", "--json", "--allow", "mismatch-arguments", *words, "a.fdry")
        done = self._run(*given, *self._command(options), **environment)
        *talk, report = done.stderr.splitlines()
        return json.loads(done.stdout), json.loads(report), "\n".join(talk)

    def plain(self, *options: str) -> Any:
        environment = {**self.line.environment, "LD_LIBRARY_PATH": str(native.simulator_directory())}
        command = self._command(options)[1:]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return json.loads(done.stdout)

    def forget_caches(self) -> None:
        """Remove what starts left in the engine's folder of compiled code."""
        shutil.rmtree(self.line.cache / "vllm")

    def sets(self) -> dict[str, int]:
        graphs = archive.read(self.line.work / "a.fdry").processes[0].graphs
        return {name: sum(graph.set == name for graph in graphs) for name in sorted({graph.set for graph in graphs})}
