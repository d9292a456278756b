"""What is installed: Foundry's own libraries, Python packages, the toolkit; and what is preloaded."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from foundry import native
from foundry.compat import packages, peer
from foundry.errors import FoundryError
from foundry.launch import executable as executables
from foundry.session.doctor.check import GPU, SIMULATOR, Check, Surroundings, bad, good, note

AGAIN = "install foundry again; a development build is named by `FOUNDRY_LIBRARY_DIR`"


def hook(_: Surroundings) -> Iterator[Check]:
    """Tell whether the hook is there and can be loaded."""
    try:
        found = native.Hook()
        functions = len(found.table())
    except FoundryError as error:
        yield bad("hook", str(error), error.hint or AGAIN)
        return
    yield good("hook", f"{found.path}, ABI {native.ABI}, {functions} driver functions")


def simulator(_: Surroundings) -> Iterator[Check]:
    """Tell whether the simulator is there."""
    try:
        yield good("simulator", str(native.simulator_directory()))
    except FoundryError as error:
        yield note("simulator", str(error), error.hint or AGAIN, (SIMULATOR,))


def import_name(_: Surroundings) -> Iterator[Check]:
    """Tell whether another distribution owns our import name."""
    owners = peer.thorough([entry for entry in sys.path if entry])
    if owners:
        hint = "keep them in separate virtual environments"
        yield bad("import name", f"`{', '.join(owners)}` owns the import name `foundry`, too", hint)
    else:
        yield good("import name", "`foundry` belongs to this package alone")


def python(here: Surroundings) -> Iterator[Check]:
    """Tell the Python that a command line would start, whether it can be hooked, and what it has."""
    program = None
    for name in ("python3", "python"):
        try:
            program = executables.find([name], here.environment)
            executables.require_hookable(program, here.environment)
            break
        except FoundryError as error:
            if program is not None:
                yield bad("python", str(error), error.hint or "use another Python", (GPU, SIMULATOR))
                return
    if program is None:
        yield note("python", "none on PATH; programs in other languages can be captured")
        return
    folders = [
        folder
        for path in executables.chain(program, here.environment)
        for folder in packages.import_folders(path, here.environment)
    ]
    if not folders:
        yield good("python", f"{program.path}, a script that starts the real one")
        return
    yield good("python", f"{program.path}, can be hooked")
    found = packages.versions(folders)
    yield good("torch", found.get("torch", "not in that Python; not needed"))
    engines = [f"{name} {found[name]}" for name in packages.ENGINES if name in found]
    yield good("engines", ", ".join(engines) or "none in that Python")


def toolkit(here: Surroundings) -> Iterator[Check]:
    """Tell the CUDA toolkit."""
    path = shutil.which("nvcc", path=here.environment.get("PATH", executables.DEFAULT_PATH))
    usual = here.root / "usr/local/cuda/bin/nvcc"
    found = path or (str(usual) if usual.exists() else "")
    yield good("CUDA toolkit", f"{found or 'not found'}; not needed")


def preload(here: Surroundings) -> Iterator[Check]:
    """Tell what else is preloaded."""
    entries = [entry for entry in re.split(r"[\s:]", here.environment.get("LD_PRELOAD", "")) if entry]
    gone = [entry for entry in entries if "/" in entry and not Path(entry).exists()]
    if gone:
        hint = "take it out of `LD_PRELOAD`"
        yield note("LD_PRELOAD", f"`{gone[0]}` is not there: the loader complains in each process", hint)
    elif entries:
        hint = "should it intercept CUDA, too, try without it"
        yield note("LD_PRELOAD", f"{', '.join(entries)}; kept, after the hook", hint)
    else:
        yield good("LD_PRELOAD", "empty")
    if os.geteuid() != os.getuid() or os.getegid() != os.getgid():
        hint = "start foundry as an ordinary program"
        yield bad("privileges", "this process is setuid or setgid: the loader ignores LD_PRELOAD", hint)
