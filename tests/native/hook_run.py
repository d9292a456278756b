"""Compiles the programs of the hook's tests and runs them on the simulator, hooked or not."""

from __future__ import annotations

import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.native_build import PROGRAMS, compile_program, hooked_environment, make_kernels

from foundry.spool.reader import Spool, process_folders, read_spool


@dataclass
class Outcome:
    """What a program did, and what the hook wrote of it."""

    code: int
    lines: list[str]
    errors: str
    status: str
    session: Path

    def said(self, word: str) -> list[str]:
        """Return the words behind the first line that begins with `word`."""
        return next(line.split()[1:] for line in self.lines if line.split()[:1] == [word])

    def number(self, word: str) -> int:
        """Return the last word of a line as a hexadecimal number."""
        return int(self.said(word)[-1], 16)

    def spools(self) -> list[Spool]:
        """Read every process folder; each must be without faults."""
        spools = [read_spool(folder) for folder in process_folders(self.session)]
        assert all(spool is not None for spool in spools)
        return [spool for spool in spools if spool is not None]

    def spool(self) -> Spool:
        """Read the only process folder."""
        (spool,) = self.spools()
        assert spool.findings == []
        return spool


def events(spool: Spool, name: str) -> list[Any]:
    """All events of a class, by its name."""
    return [entry.event for entry in spool.entries if type(entry.event).__name__ == name]


def counters(spool: Spool) -> dict[str, int]:
    """The last totals."""
    return dict(events(spool, "Counters")[-1].values)


class Bench:
    """A folder of compiled programs; each is compiled once."""

    def __init__(self, folder: Path, sources: Path = PROGRAMS / "hook_programs") -> None:
        self.folder = folder
        self.sources = sources
        make_kernels(folder / "kernels.image", PROGRAMS / "sim_kernels.c")

    def library(self, name: str, *flags: str) -> Path:
        return self._compile(f"{name}.c", f"lib{name}.so", "-shared", "-fPIC", *flags)

    def program(self, name: str, *flags: str) -> Path:
        # Programs that are linked otherwise are other files.
        other = f"-{zlib.crc32(' '.join(flags).encode()):08x}" if any(f.startswith("-Wl") for f in flags) else ""
        return self._compile(f"{name}.c", name + other, *flags)

    def _compile(self, source: str, output: str, *flags: str) -> Path:
        path = self.folder / output
        if not path.exists():
            compile_program(path, [self.sources / source], f"-I{PROGRAMS / 'hook_programs'}", *flags)
        return path

    def run(
        self, program: Path, session: Path, *arguments: str, mode: str | None = "capture", **environment: str
    ) -> Outcome:
        session.mkdir(exist_ok=True)
        done = subprocess.run(
            [str(program), *arguments],
            env=hooked_environment(mode, session) | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return outcome(session, done.returncode, done.stdout, done.stderr)


def outcome(session: Path, code: int, output: str, errors: str) -> Outcome:
    """Collect what a finished program left."""
    status = session / "status"
    return Outcome(code, output.splitlines(), errors, status.read_text() if status.exists() else "", session)
