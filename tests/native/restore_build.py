"""Compiles the programs of the native restore tests and runs them under the hook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from foundry import native

REPOSITORY = Path(__file__).absolute().parents[2]
NATIVE = REPOSITORY / "foundry" / "native"
HERE = Path(__file__).absolute().parent


def cuda_include() -> Path:
    """Find the folder of cuda.h."""
    import nvidia

    for root in nvidia.__path__:
        for header in sorted(Path(root).glob("*/include/cuda.h"), reverse=True):
            return header.parent
    return Path("/usr/local/cuda/include")


def compile_program(output: Path, sources: list[Path], *flags: str) -> Path:
    """Compile a C++ program of the tests."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    subprocess.run(
        [
            *(compiler, "-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *flags),
            *("-isystem", str(cuda_include()), "-I", str(NATIVE)),
            *map(str, sources),
            *("-o", str(output), "-ldl", "-pthread"),
        ],
        check=True,
    )
    return output


def make_kernels(output: Path, source: Path) -> bytes:
    """Compile kernels for the simulator."""
    subprocess.run([sys.executable, str(NATIVE / "sim" / "make_image.py"), str(output), str(source)], check=True)
    return output.read_bytes()


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
    status = folder / "status"
    status.unlink(missing_ok=True)
    inherited = {
        name: os.environ[name] for name in ("PATH", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ
    }
    # A sanitized hook needs its runtime to be first.
    runtime = os.environ.get("FOUNDRY_TEST_PRELOAD", "")
    done = subprocess.run(
        [str(program), *commands],
        env={
            **inherited,
            "LD_LIBRARY_PATH": str(native.simulator_directory()),
            "LD_PRELOAD": " ".join(filter(None, (runtime, str(native.hook_library())))),
            "FOUNDRY_MODE": "restore",
            "FOUNDRY_SPOOL": str(spool),
            "FOUNDRY_IMAGE": str(folder),
            "FOUNDRY_STATUS": str(status),
            "FOUNDRY_SIM_SEED": "7",
            **environment,
        },
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
