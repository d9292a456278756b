"""`foundry pack`: from the session folder of a capture that was killed to the archive that it would have written."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foundry import archive, env
from foundry.errors import ArchiveExistsError, SpoolError, UsageError
from foundry.findings import (
    SPOOL_BAD_CHECKSUM,
    SPOOL_BAD_FRAME,
    SPOOL_BLOB_MISSING,
    SPOOL_BROKEN,
    SPOOL_TORN_TAIL,
)
from foundry.launch import descendants
from foundry.launch.executable import Executable, absolute
from foundry.session import context, product, record, thin, words, workspace
from foundry.session.listener import Listener
from foundry.session.product import Product
from foundry.session.record import Record
from foundry.session.status import Status

TORN = frozenset({SPOOL_TORN_TAIL, SPOOL_BAD_CHECKSUM, SPOOL_BAD_FRAME, SPOOL_BLOB_MISSING, SPOOL_BROKEN})
"""Findings that say that something was recorded and is lost."""
TORN_CODE = 3
NO_GROUP = -1


@dataclass(frozen=True)
class Request:
    """What the user asked for. `spool` None: an error says which there are. `output` None: as the capture."""

    spool: Path | None
    output: Path | None = None
    force: bool = False
    all_kernels: bool = False
    thin: bool = False
    keep: bool = False


@dataclass(frozen=True)
class Outcome:
    """What was packed. `removed` tells whether the session folder is gone."""

    product: Product
    spool: Path
    torn: bool
    running: bool
    removed: bool

    @property
    def exit_code(self) -> int:
        """0, or 3 if something of the spool is lost."""
        return TORN_CODE if self.torn else 0

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        return {
            **self.product.as_dict(),
            "spool": str(self.spool),
            "torn": self.torn,
            "running": self.running,
            "removed": self.removed,
        }


@dataclass(frozen=True)
class _Found:
    """A spool, and the session folder around it if there is one."""

    spool: Path
    session: Path | None
    record: Record | None

    @property
    def running(self) -> bool:
        """Whether the capture, or a process of its command, still runs."""
        if self.session is not None and workspace.is_running(self.session):
            return True
        return bool(descendants.of_session(f"{env.SPOOL}={self.spool}", NO_GROUP))


def run(request: Request, environment: Mapping[str, str], listener: Listener, *, version: str) -> Outcome:
    """Pack a spool and write its archive."""
    found = _find(request.spool)
    running = found.running
    target = _target(request, found, running)
    if target.exists() and not target.is_file():
        raise ArchiveExistsError(f"`{target}` is not a regular file", hint="name a file: `-o FILE`")
    if target.exists() and not request.force:
        raise ArchiveExistsError(
            f"`{target}` exists", hint="replace it with `--force`, or name another file: `-o FILE`"
        )
    if running:
        listener.note("it is still being written; what is there so far is packed")
    disarmed: Mapping[str, str] = {}
    if found.session:
        status = Status(found.session / workspace.STATUS_NAME)
        status.read()
        disarmed = status.disarmed
    known = found.record.context if found.record else context.unknown(version=version)
    all_kernels = request.all_kernels or bool(found.record and found.record.all_kernels)
    with listener.step("packing"), archive.ahead() as ahead:
        lean = request.thin or bool(found.record and found.record.thin)
        capture, findings = product.pack(
            found.spool, known, all_kernels=all_kernels, disarmed=disarmed, ahead=None if lean else ahead
        )
        if not capture.processes:
            raise SpoolError(f"`{found.spool}` holds no process whose recording had begun", hint="capture again")
        if lean:
            program = found.record.program if found.record else ""
            libraries = thin.Libraries(Executable(program, ()), environment)
            capture = thin.leave_out(capture, libraries)
        written = product.write(capture, findings, target, force=request.force, ahead=ahead)
    torn = any(finding.code in TORN for finding in findings)
    removable = found.record is not None and not (request.keep or torn or running)
    if removable and found.session:
        shutil.rmtree(found.session, ignore_errors=True)
    return Outcome(written, found.spool, torn, running, removable)


def _find(named: Path | None) -> _Found:
    if named is None:
        raise UsageError("no spool named", hint=_what_there_is())
    path = absolute(named)
    try:
        if not path.exists():
            raise SpoolError(f"no folder at `{named}`", hint=_what_there_is())
        if not path.is_dir():
            raise SpoolError(f"`{named}` is not a folder, so it is no spool", hint=_what_there_is())
        entries = {entry.name for entry in path.iterdir()}
    except OSError as error:
        raise SpoolError(f"cannot read `{named}`: {error.strerror}") from None
    if workspace.SPOOL_NAME in entries and (record.NAME in entries or workspace.STATUS_NAME in entries):
        found = _Found(path / workspace.SPOOL_NAME, path, record.read(path))
    elif path.name == workspace.SPOOL_NAME and (path.parent / record.NAME).exists():
        found = _Found(path, path.parent, record.read(path.parent))
    elif "events" in entries:
        raise SpoolError(
            f"`{named}` is the spool of one process; name the folder that holds those of all",
            hint=f"`foundry pack {path.parent}`",
        )
    else:
        found = _Found(path, None, None)
    if not product.processes_seen(found.spool):
        if not entries or found.session:
            raise SpoolError(f"`{named}` is empty: no process recorded anything", hint=_what_there_is())
        raise SpoolError(f"`{named}` is not a spool: no process recorded anything in it", hint=_what_there_is())
    return found


def _target(request: Request, found: _Found, running: bool) -> Path:
    if request.output is not None:
        return absolute(request.output)
    if running:
        raise UsageError(
            f"the capture of `{found.session or found.spool}` still runs, and writes its archive itself",
            hint="to have what is there so far, name a file: `-o FILE`",
        )
    if found.record is None:
        raise UsageError(
            f"`{found.spool}` does not tell what its archive would have been called", hint="name a file: `-o FILE`"
        )
    return Path(found.record.target)


def _what_there_is() -> str:
    """Name what killed captures left."""
    found = workspace.left_overs()
    if not found:
        return "no capture that was killed left anything in the temporary folder"
    return "a killed capture left `" + "`, another `".join(str(one.folder) for one in found[:3]) + "`"


def described(one: workspace.LeftOver) -> str:
    """Say in one line what a killed capture was of, and where its session folder is."""
    command = context.command_line(one.record.context) or "a command"
    return f"of `{command}`, {words.readable_size(one.size)} in `{one.folder}`"


def sentence(one: workspace.LeftOver) -> str:
    """Say that a capture was killed, and what finishes it."""
    command = context.command_line(one.record.context) or "a command"
    return f"a capture of `{command}` was killed; `foundry pack {one.folder}` finishes it"
