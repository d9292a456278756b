"""Capture a program, restore it from what was captured, and pack what each of the two runs left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.native_build import hooked_environment

from foundry import archive, env, image, native
from foundry.model import Capture
from foundry.pack import pack
from foundry.spool.reader import Spool, process_folders, read_spool

ENGINES = Path(__file__).resolve().parents[1] / "engines"


@dataclass(frozen=True)
class Run:
    """What a run printed, and what there is to read of it."""

    output: str
    session: Path
    capture: Capture
    findings: list[str]

    def spool(self) -> Spool:
        """Read the folder of the only process."""
        (folder,) = process_folders(self.session)
        spool = read_spool(folder)
        assert spool is not None
        return spool


@dataclass(frozen=True)
class Program:
    """A command, with the environment that it needs. `restore_command` is for those that are told what to restore."""

    command: Sequence[str]
    environment: tuple[tuple[str, str], ...] = ()
    restore_command: Sequence[str] | None = None

    def captured(self, session: Path, seed: int) -> Run:
        """Run it under the hook in capture mode."""
        return self._run(self.command, session, "capture", seed)

    def restored(self, session: Path, seed: int, capture: Capture, **environment: str) -> Run:
        """Run it from what a capture holds; the spool tells what was restored."""
        images = session.with_name(session.name + "-images")
        images.mkdir()
        for process in capture.processes:
            image.build(capture, process.role, images / f"{process.role}.image", "00" * 32)
        settings = {env.IMAGE: str(images), env.RESPOOL: "1", **environment}
        return self._run(self.restore_command or self.command, session, "restore", seed, **settings)

    def _run(self, command: Sequence[str], session: Path, mode: str, seed: int, **environment: str) -> Run:
        session.mkdir()
        done = subprocess.run(
            list(command),
            env={
                **hooked_environment(mode, session),
                env.SIMULATOR_SEED: str(seed),
                env.QUIET: "1",
                **dict(self.environment),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        capture, findings = pack(session)
        # A reader may find fault with what the packer made; what it accepts must be what was packed.
        path = session.with_suffix(".fdry")
        archive.write(capture, path)
        assert archive.read(path).processes == capture.processes
        return Run(done.stdout, session, capture, [finding.code for finding in findings])


def python_program(script: str, *arguments: str, cache: Path) -> Program:
    """Give a script of `tests/engines` as a program."""
    environment = {
        "PYTHONPATH": ":".join(path for path in sys.path if path),
        "XDG_CACHE_HOME": str(cache),
        env.LIBRARY_DIRECTORY: str(native.hook_library().parent),
    }
    return Program([sys.executable, str(ENGINES / script), *arguments], tuple(environment.items()))
