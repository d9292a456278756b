"""Builds the C engine of `engines/tinyllm` and runs it: plainly, on the simulator, and under foundry."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.tinyllm.make_weights import write_model
from helpers.commandline import CommandLine
from helpers.native_build import SANITIZERS, base_environment, command_environment, run_tool, sanitized
from helpers.source import NATIVE, ROOT

from foundry import native

FOLDER = ROOT / "tests" / "engines" / "tinyllm"
SWITCH = "TINYLLM_GRAPHS"
KEYS = 36
"""Shapes of a pass: 1, 2 or 4 streams, windows of 1 to 4 rows, 1 to 3 chunks of 256 positions."""
PROMPTS = ("The graphs of a server", "A key", "x", "Größe, naïve and 東京")
CONTEXT = 640


@dataclass(frozen=True)
class Result:
    """What a run of the engine printed."""

    lines: list[dict[str, Any]]
    statistics: dict[str, Any]
    errors: str

    def tokens(self) -> list[list[int]]:
        """Give the tokens of each prompt."""
        return [line["tokens"] for line in self.lines if "tokens" in line]


def result_of(done: subprocess.CompletedProcess[str]) -> Result:
    """Read what a run printed, which must have ended well."""
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    statistics = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"mode"')]
    return Result([json.loads(line) for line in done.stdout.splitlines()], statistics[-1], done.stderr)


def generation(prompts: tuple[str, ...], tokens: int, temperature: float) -> list[str]:
    """Give the options for tokens of prompts that are served at once."""
    words = [word for prompt in prompts for word in ("--prompt", prompt)]
    words += ["--tokens", str(tokens), "--temperature", str(temperature), "--seed", "5", "--ignore-end"]
    return ["--once", "--statistics", *words]


def make(build: Path) -> None:
    """Build the engine, or what changed in its build folder."""
    words = ["make", "-j2", "-C", str(FOLDER), f"BUILD={build}", f"PYTHON={sys.executable}", f"NATIVE={NATIVE}"]
    run_tool(*words, CFLAGS=" ".join(("-O2", *(SANITIZERS if sanitized() else ()))))


class Engine:
    """The built engine and a model for it."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "build" / "tinyllm"
        self.model = folder / "model"
        write_model(self.model)
        make(self.program.parent)
        self.plain: dict[tuple[str, ...], Result] = {}

    def words(self, *options: str, model: Path | None = None) -> list[str]:
        """Give the command line."""
        return [str(self.program), "--model", str(model or self.model), *options]

    def start(self, *options: str, model: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it on the simulator, where it runs on a device at all."""
        return subprocess.run(
            self.words(*options, model=model),
            env={**base_environment(), **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def run(self, *options: str, model: Path | None = None, **environment: str) -> Result:
        """Run it to a good end."""
        return result_of(self.start(*options, model=model, **environment))

    def reference(self, *options: str) -> Result:
        """Run it on the CPU, or tell what it gave before."""
        if options not in self.plain:
            self.plain[options] = self.run("--device", "cpu", *options)
        return self.plain[options]


class Foundry:
    """`foundry` on the simulator, with an archive of the engine's graphs."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        folder.mkdir()
        self.commands = CommandLine(folder, native.hook_library().parent)
        self.commands.environment.update(command_environment())
        self.engine = engine
        self.archive = folder / "engine.fdry"

    def capture(self, *options: str, flags: tuple[str, ...] = (), **environment: str) -> Result:
        """Capture the engine with graphs on."""
        words = ("capture", "--sim", *flags, "-o", self.archive, "--", *self.engine.words(*options))
        return result_of(self.commands.run(*words, environment={SWITCH: "1", **environment}))

    def restore(
        self,
        *options: str,
        model: Path | None = None,
        program: Path | None = None,
        allow: tuple[str, ...] = (),
        **environment: str,
    ) -> Result:
        """Run the engine, or another program, with the archive's graphs."""
        _, *more = self.engine.words(*options, model=model)
        words = self.restoring(str(program or self.engine.program), *more, allow=allow)
        return result_of(self.commands.run(*words, environment={SWITCH: "1", **environment}))

    def restoring(self, *command: str, allow: tuple[str, ...] = ()) -> list[str]:
        """Give the arguments for a restore of a command, whose graphs depend on the model, not on prompts and ports."""
        allowed = [word for code in ("mismatch-arguments", *allow) for word in ("--allow", code)]
        return ["restore", "--sim", *allowed, str(self.archive), "--", *command]
