"""Runs the program of the native restore tests under the hook."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from helpers.native_build import hooked_environment


@dataclass
class Outcome:
    """What a program said."""

    lines: list[str]
    errors: str
    status: str
    spool: Path

    def last(self, word: str) -> str:
        """Return the last line that begins with a word."""
        return next(line for line in reversed(self.lines) if line.split()[0] == word)


def run_hooked(program: Path, folder: Path, commands: list[str], **environment: str) -> Outcome:
    """Run commands in a program under the hook, in restore mode unless told; images are taken from `folder`."""
    spool = folder / "spool"
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir()
    status = spool / "status"
    done = subprocess.run(
        [str(program), *commands],
        env={**hooked_environment("restore", spool), "FOUNDRY_IMAGE": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return Outcome(
        done.stdout.splitlines(),
        done.stderr,
        status.read_text() if status.exists() else "",
        spool,
    )
