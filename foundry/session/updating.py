"""`foundry capture --update`: a run with the graphs of an archive, to which those are added that it captures.

The graphs that are there come back as in a restore, so all memory of theirs is where it was, and what is new lies
beside it. Each is told to the spool as it was rebuilt. So the whole is packed as any capture, and must hold every graph
of the archive unchanged: else nothing is written. What the command does not ask for is told only when its process ends;
until then a server's archive may have to wait.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import env
from foundry.compat import gate
from foundry.errors import ArchiveNotFoundError, FoundryError, NotUpdatedError, UsageError
from foundry.launch import environment as launch_environment
from foundry.launch import executable as executables
from foundry.launch import python_options
from foundry.launch.supervisor import Ended, Supervisor
from foundry.session import caching, context, images, product, words
from foundry.session.capture_run import CaptureRun, Outcome, Request
from foundry.session.listener import Listener
from foundry.session.product import Product
from foundry.session.surroundings import Surroundings
from foundry.session.workspace import Workspace
from foundry.store import location

if TYPE_CHECKING:
    from foundry.diff import Difference
    from foundry.findings import Finding
    from foundry.model import Capture

GraphName = tuple[str, str, str]
"""Role, set and key."""
PRESENT, NONE = "present", "none"


def run(request: Request, environment: Mapping[str, str], listener: Listener, *, version: str) -> Outcome:
    """Run the command, and add what it captured to the archive. Raises FoundryError if the command was not started."""
    from foundry import archive

    path = _path(request)
    if odd := python_options.warning(environment):
        listener.warn(odd)
    found = executables.find(request.command, environment)
    executables.require_hookable(found, environment)
    summary = archive.summary(path)
    around = Surroundings(found, environment)
    differences = around.differences(request.command, summary, simulated=request.simulated)
    items = gate.pass_through(differences, frozenset())
    found_images = images.find(path, summary, location.find(environment), around)
    images.make_now(found_images, listener)
    gate.pass_through([*items, *around.compared(found_images.libraries)], frozenset())
    before = archive.read(path)
    if request.caches:
        caching.place(path, summary, found_images.folder, environment, listener)
    with Workspace() as workspace:
        update = _Update(request, workspace, path, before, listener)
        update.context = context.of_command(request.command, environment, version=version, simulated=request.simulated)
        hooked = launch_environment.for_restore(
            environment,
            spool=workspace.spool,
            status=workspace.status,
            image=found_images.folder,
            quiet=True,
            simulated=request.simulated,
        )
        hooked.update({env.RESPOOL: "1", env.UPDATE: "1"})
        started = time.monotonic()
        with Supervisor(workspace.folder, workspace.worth_keeping) as supervisor, update.watching_caches(environment):
            on_line = update.log_watch.look_at if update.log_watch else None
            ended = supervisor.run(found, hooked, tick=update.tick, on_line=on_line)
            return update.finish(ended, time.monotonic() - started)


def _path(request: Request) -> Path:
    path = executables.absolute(request.update or Path())
    others = {
        "--output": request.output is not None,
        "--prove": request.prove,
        "--scrub": request.scrub,
        "--witness": request.witness,
        "--thin": request.thin,
        "--prefetch": request.prefetch,
    }
    if unfit := [name for name, given in others.items() if given]:
        raise UsageError(f"`--update` and `{unfit[0]}` do not go together", hint="capture anew, without `--update`")
    if not path.exists():
        raise ArchiveNotFoundError(f"no archive at `{path}`", hint=f"`foundry capture -o {path} -- CMD` makes one")
    return path


class _Update(CaptureRun):
    """The state of one update while its command runs and afterwards."""

    doing = "updating the archive"

    def __init__(self, request: Request, workspace: Workspace, path: Path, before: Capture, listener: Listener) -> None:
        super().__init__(request, workspace, path, True, listener)
        self._before = self.earlier = before
        self._spool = workspace.spool
        self._over = False

    def finish(self, ended: Ended, seconds: float) -> Outcome:
        """Write what is not written yet, after the command's end, and say how it went."""
        self._over = True
        return super().finish(ended, seconds)

    def _put(self, capture: Capture, findings: list[Finding], *, again: bool) -> Product | None:
        if self._status.disarmed:
            role, reason = next(iter(self._status.disarmed.items()))
            raise _refused(f"{role}: {reason}")
        reasons = _reasons(self._spool)
        if not self._over and _names(self._before) - _names(capture) - reasons.keys():
            raise FoundryError("graphs that the command did not ask for are told when it ends")
        made = merged(self._before, capture, reasons)
        fresh = added(self._before, made)
        self._listener.note(f"{words.count(len(fresh), 'graph')} added")
        if not fresh:
            return product.of_archive(self._target)
        return product.write(made, list(made.findings), self._target, force=True)


def merged(before: Capture, after: Capture, reasons: Mapping[GraphName, str]) -> Capture:
    """Give the capture of an update, with what it has of the archive; NotUpdatedError if a graph is not as it was.

    `reasons` tell why graphs were not given back.
    """
    from foundry import diff
    from foundry.pack import add_files

    roles = [process.role for process in before.processes]
    if other := [process.role for process in after.processes if process.role not in roles]:
        raise _refused(f"the process {other[0]} is not in the archive")
    for role in roles:
        if after.process(role) is None:
            raise _refused(f"the process {role} did not use CUDA in this run")
    there = _names(before)
    lost = sorted((there - _names(after)) | (there & reasons.keys()))
    if lost:
        why = reasons.get(lost[0], "it was not built in this run")
        raise _refused(f"{lost[0][0]}: graph {lost[0][1]}/{lost[0][2]} did not come back: {why}")
    changed = [one for one in diff.compare(_labelled(before), _labelled(after)) if not _is_new(one)]
    if changed:
        raise _refused(_told(changed))
    held = {(file.cache, file.path) for file in after.files}
    files = [file for file in caching.files_of(before) if file[:2] not in held]
    return replace(add_files(after, files), context=before.context, start_files=before.start_files)


def _told(changed: Sequence[Difference]) -> str:
    """Tell the first in full, and of the others what they are."""
    first, *others = changed
    kinds = sorted({one.what for one in others})
    return f"{first} (and {len(others)} more: {', '.join(kinds)})" if others else str(first)


def added(before: Capture, after: Capture) -> set[GraphName]:
    """Name the graphs that are new."""
    return _names(after) - _names(before)


def _names(capture: Capture) -> set[GraphName]:
    return {
        (process.role, graph.set, graph.key) for process in _labelled(capture).processes for graph in process.graphs
    }


def _labelled(capture: Capture) -> Capture:
    """Leave out graphs that nobody named: a restore gives them to nobody, and each run captures its own."""
    processes = tuple(
        replace(process, graphs=tuple(graph for graph in process.graphs if graph.set)) for process in capture.processes
    )
    return replace(capture, processes=processes)


def _is_new(difference: Difference) -> bool:
    return (difference.what, difference.before, difference.after) == ("graph", NONE, PRESENT)


def _reasons(spool: Path) -> dict[GraphName, str]:
    """Read why graphs of the archive were given up."""
    from foundry.spool import restore_reports

    return {
        (process.role, graph.set, graph.key): graph.reason
        for process in restore_reports(spool)
        for graph in process.graphs
        if graph.state != 1
    }


def _refused(reason: str) -> NotUpdatedError:
    return NotUpdatedError(
        f"the archive stays as it is, since this run does not fit it: {reason}",
        hint="capture anew into another file: `foundry capture -o FILE -- CMD`",
    )
