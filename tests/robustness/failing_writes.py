"""Runs what writes into a folder again and again, each time with another call failing, and tells what was left.

Runs under the preload library `failing_calls`: `python failing_writes.py WHAT SPOOL FOLDER`. Everything is imported
once; each run is a forked child. One JSON list on stdout, an object for each run.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import io
import json
import os
import resource
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

COUNT, KILL_BEFORE, FAIL, FAIL_FROM, SHORT, INTERRUPT = range(6)
CALLS = ctypes.CDLL(None)
MOST = 400


@dataclass
class Run:
    """What one run did and left: `left` is a digest by name, `after` the same once another run without faults followed,
    one that may replace what is there."""

    mode: str
    at: int
    code: int | None
    said: str
    left: dict[str, str]
    after: dict[str, str]
    reached: bool


def contents(folder: Path) -> dict[str, str]:
    """The digest of each file below the folder, by name; empty folders end in a slash."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        elif not any(path.iterdir()):
            found[name + "/"] = ""
    return found


def child(action: Callable[[], int], folder: Path, mode: int, at: int, code: int) -> tuple[int | None, str, bool]:
    """Run the action with a fault; give its exit code, None if it was killed, what it said, and if it met the fault."""
    told = folder.parent / "told"
    seen_in, seen_out = os.pipe()
    pid = os.fork()
    if not pid:
        handle = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        if mode == FAIL and code == errno.EFBIG:
            resource.setrlimit(resource.RLIMIT_FSIZE, (at, at))
            mode = COUNT
        CALLS.failing_calls_arm(bytes(folder), mode, at, code)
        result = 99
        try:
            result = action()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os.write(seen_out, CALLS.failing_calls_seen().to_bytes(4, "little"))
            os._exit(result)
    os.close(seen_out)
    _, status = os.waitpid(pid, 0)
    seen = os.read(seen_in, 4)
    os.close(seen_in)
    killed = os.WIFSIGNALED(status)
    reached = killed or int.from_bytes(seen, "little") > at
    return None if killed else os.WEXITSTATUS(status), told.read_text(), reached


@dataclass(frozen=True)
class Scene:
    """What is run, the same with leave to replace what is there, and what stands there before."""

    action: Callable[[], int]
    again: Callable[[], int]
    prepare: Callable[[Path], None]


def tried(scene: Scene, folder: Path, fault: tuple[str, int, int, int]) -> Run:
    """One run from a fresh folder, then one without a fault."""
    name, mode, at, code = fault
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    scene.prepare(folder)
    ended, said, reached = child(scene.action, folder, mode, at, code)
    left = contents(folder)
    child(scene.again, folder, COUNT, -1, 0)
    return Run(name, at, ended, said, left, contents(folder), reached)


def every(scene: Scene, folder: Path) -> list[Run]:
    """All faults at all places."""
    # Once in this process, so that its children find everything imported.
    folder.mkdir(mode=0o700)
    with contextlib.redirect_stderr(io.StringIO()):
        scene.again()
    runs = [
        tried(scene, folder, ("none", COUNT, -1, 0)),
        tried(scene, folder, ("short", SHORT, -1, 0)),
        tried(scene, folder, ("interrupted", INTERRUPT, -1, 0)),
        tried(scene, folder, ("limit", FAIL, 1000, errno.EFBIG)),
    ]
    for name, mode, code in (
        ("killed", KILL_BEFORE, 0),
        ("full", FAIL_FROM, errno.ENOSPC),
        ("broken", FAIL, errno.EIO),
        ("read-only", FAIL_FROM, errno.EROFS),
    ):
        for at in range(MOST):
            run = tried(scene, folder, (name, mode, at, code))
            if not run.reached:
                break
            runs.append(run)
    return runs


def pack(spool: Path, folder: Path, force: bool) -> Callable[[], int]:
    """`foundry pack`."""
    from foundry.cli.main import run

    arguments = ["pack", str(spool), "-o", str(folder / "x.fdry"), *(["--force"] if force else [])]
    return lambda: run(arguments)


def images(spool: Path, folder: Path) -> Callable[[], int]:
    """The restore images of a capture."""
    from foundry import image
    from foundry.errors import FoundryError
    from foundry.pack import pack as packed
    from foundry.store import images as cache

    capture, _ = packed(spool)

    def build(temporary: Path) -> None:
        for process in capture.processes:
            image.build(capture, process.role, temporary / f"{process.role}{cache.SUFFIX}", "ab" * 32)

    def action() -> int:
        try:
            cache.make(folder / "images" / "id-1", build, lambda: False)
        except (OSError, FoundryError) as error:
            print(getattr(error, "strerror", None) or error)
            return 1
        return 0

    return action


def old_archive(folder: Path) -> None:
    """What stood there before."""
    (folder / "x.fdry").write_bytes(b"old")


def old_images(folder: Path) -> None:
    """Images that are to be replaced, as damaged ones are."""
    place = folder / "images" / "id-1"
    place.mkdir(parents=True)
    (place / "python-0.image").write_bytes(b"old")


def main() -> None:
    """Run one of the three."""
    what, spool, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if what == "archive":
        scene = Scene(pack(spool, folder, force=False), pack(spool, folder, force=True), lambda _: None)
    elif what == "archive-replaced":
        scene = Scene(pack(spool, folder, force=True), pack(spool, folder, force=True), old_archive)
    else:
        scene = Scene(images(spool, folder), images(spool, folder), old_images)
    runs = every(scene, folder)
    json.dump([asdict(run) for run in runs], sys.stdout)


if __name__ == "__main__":
    main()
