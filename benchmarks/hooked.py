"""How a command is started without the hook, and with the hook in each of its states. Shared by the benchmarks."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from foundry import env, native

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from helpers import native_build  # noqa: E402

PLAIN, OFF, CAPTURED, DISARMED = "plain", "off", "captured", "disarmed"


def build(folder: Path, program: str, *, simulated: bool, kernel: str, ptx: str) -> tuple[Path, Path]:
    """Compile `program`.c of this folder and write its kernel's image, for the simulator or as PTX; return both."""
    image = folder / "image"
    if simulated:
        source = folder / "kernel.c"
        source.write_text(kernel)
        native_build.make_kernels(image, source)
    else:
        image.write_text(ptx)
    return native_build.compile_program(folder / program, [HERE / f"{program}.c"], "-O2"), image


def environment(way: str, folder: Path, *, simulated: bool) -> dict[str, str]:
    """Make the environment of a command that is run plainly, or with the hook but without the command line's work.

    `off` is the hook without a mode, `captured` a hook that records, `disarmed` a restore that is given up at its first
    look, as its image is not there.
    """
    made = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    if simulated:
        made[env.LIBRARY_PATH] = str(native.simulator_directory())
    if way == PLAIN:
        return made
    made[env.PRELOAD] = " ".join(filter(None, [str(native.hook_library()), made.get(env.PRELOAD)]))
    if way != OFF:
        session = Path(tempfile.mkdtemp(prefix=f"{way}-", dir=folder))
        made |= {
            env.MODE: "capture" if way == CAPTURED else "restore",
            env.SPOOL: str(session), env.STATUS: str(session / "status"), env.QUIET: "1",
        }  # fmt: skip
        if way == DISARMED:
            (session / "images").mkdir()
            made[env.IMAGE] = str(session / "images")
    return made


def check(way: str, made: dict[str, str]) -> None:
    """RuntimeError if the hook was not in the state that was wanted: only then was it measured."""
    if way in (CAPTURED, DISARMED):
        status = Path(made[env.STATUS])
        told = status.read_text() if status.exists() else ""
        if (" disarmed " in told) != (way == DISARMED) or " armed" not in told:
            raise RuntimeError(f"the hook was not {way}: {told or 'it has said nothing'}")
