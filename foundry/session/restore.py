"""`foundry restore` up to the point where the command starts.

What is imported here counts against the start of the command: only what every restore needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from foundry.compat import codes, gate, gpu, peer
from foundry.compat.items import Item, Level
from foundry.errors import ArchiveNotFoundError, FoundryError
from foundry.launch import environment as launch_environment
from foundry.launch import executable as executables
from foundry.launch import python_options
from foundry.session import caching, images, prefetching, workspace
from foundry.session.listener import Listener
from foundry.session.surroundings import Surroundings
from foundry.store import location, secrets

if TYPE_CHECKING:
    from foundry.archive import Summary
    from foundry.caches.outcome import Placed
    from foundry.session.images import Images
    from foundry.store.location import Location


@dataclass(frozen=True)
class Request:
    """What the user asked for. `archive` None means the store; `fail`: an error instead of a plain start.

    `allowed`: codes of differences that may pass. `check`: graphs are compared with their witnesses. `early`: the
    driver may be made ready before the command asks for it. `caches`: files of JIT caches are put in place. `prefetch`:
    the files that the start reads are read ahead.
    """

    command: Sequence[str]
    archive: Path | None = None
    fail: bool = False
    report: Path | None = None
    report_line: bool = False
    simulated: bool = False
    quiet: bool = False
    allowed: frozenset[str] = frozenset()
    check: bool = False
    early: bool = False
    caches: bool = True
    prefetch: bool = True

    @property
    def needs_parent(self) -> bool:
        """Whether something has to be done while the command runs, or after it."""
        return self.fail or self.report is not None or self.report_line


@dataclass(frozen=True)
class Plan:
    """How the command will be started. Without images it is started plainly, for the reason in `refused`.

    `behind`: the images are still to be made, while the command runs. `items`: what differs from the capture, as far as
    it is known before the start. `caches`: what became of its files of JIT caches, None if there are none or they were
    not wanted.
    """

    executable: executables.Executable
    place: Location | None
    archive: Path | None = None
    summary: Summary | None = None
    images: Images | None = None
    behind: bool = False
    refused: FoundryError | None = None
    items: Sequence[Item] = ()
    caches: Placed | None = None

    @property
    def restores(self) -> bool:
        """Whether the command will be restored."""
        return self.images is not None


def plan(request: Request, environment: Mapping[str, str], listener: Listener) -> Plan:
    """Find the archive, ask whether it may be used, have its images ready.

    What goes wrong on our side is a warning and a plain start, or the error itself if the request says so. What is
    wrong with the command is always an error.
    """
    if warning := peer.warning(peer.quick()):
        listener.warn(warning)
    if odd := python_options.warning(environment):
        listener.warn(odd)
    found = executables.find(request.command, environment)
    place: Location | None = None
    try:
        executables.require_hookable(found, environment)
        if told := python_options.note(request.command, environment):
            listener.note(told)
        place = location.find(environment)
        if place.note:
            listener.warn(place.note)
        path = (
            executables.absolute(request.archive) if request.archive else _in_store(request, found, environment, place)
        )
        return _restoring(request, found, environment, listener, place, path)
    except FoundryError as error:
        refused = error
    except Exception as error:
        refused = FoundryError(f"cannot prepare the restore: {type(error).__name__}: {error}")
    if request.fail:
        raise refused
    listener.warn(f"{refused}; starting without restore" + (f" (hint: {refused.hint})" if refused.hint else ""))
    return Plan(found, place, request.archive, refused=refused, items=getattr(refused, "items", ()))


def _restoring(
    request: Request,
    found: executables.Executable,
    environment: Mapping[str, str],
    listener: Listener,
    place: Location,
    path: Path,
) -> Plan:
    from foundry import archive

    try:
        summary = archive.summary(path)
    except ArchiveNotFoundError:
        raise ArchiveNotFoundError(f"no archive at `{path}`", hint=f"`foundry capture -o {path} -- CMD`") from None
    around = Surroundings(found, environment)
    try:
        differences = around.differences(request.command, summary, simulated=request.simulated)
        items = gate.pass_through(differences, request.allowed)
    except gate.RefusedError as error:
        if request.caches and not request.fail and error.codes == {codes.NO_GRAPHS}:
            caching.place(path, summary, None, environment, listener)
        raise
    if request.prefetch:
        prefetching.begin(path, summary, environment)
    wanted = images.find(path, summary, place, around)
    behind = wanted.make is not None and _may_be_behind(request, summary, wanted)
    if not behind:
        images.make_now(wanted, listener)
    items = gate.pass_through([*items, *around.compared(wanted.libraries)], request.allowed)
    for item in items:
        if item.level is Level.WARN:
            listener.warn(f"{item} (`--allow {item.code}` lets it pass)")
    placed = caching.place(path, summary, wanted.folder, environment, listener) if request.caches else None
    return Plan(found, place, path, summary, wanted, behind, items=items, caches=placed)


def _may_be_behind(request: Request, summary: Summary, wanted: Images) -> bool:
    """Whether the images may be made behind the command's start.

    Not where it must be known before the start that they can be made, and not where others stand in their place, which
    the hook would take.
    """
    from foundry.session import builder

    return not (request.fail or summary.thin or wanted.folder.exists()) and builder.possible()


def _in_store(request: Request, found: executables.Executable, environment: Mapping[str, str], place: Location) -> Path:
    from foundry.store import catalog, key

    wanted = key.command_key(
        found.path,
        request.command,
        folder=key.working_folder(),
        gpus=gpu.expected_models(environment, simulated=request.simulated),
        environment=environment,
        salt=place.salt(),
    )
    path = catalog.lookup(place, wanted)
    if path is not None:
        return path
    relatives = catalog.relatives(place, wanted)
    simulated = "--sim " if request.simulated else ""
    if relatives:
        raise ArchiveNotFoundError(
            "no archive for this command here; it was captured in another folder, on another GPU or as another rank",
            hint=f"name it: `foundry restore {simulated}{relatives[0]} -- {_shown(request.command)}`",
        )
    raise ArchiveNotFoundError(
        "no archive for this command", hint=f"make one: `foundry capture {simulated}-- {_shown(request.command)}`"
    )


def _shown(command: Sequence[str]) -> str:
    import shlex

    text = shlex.join(secrets.masked(command))
    return text if len(text) <= 120 else text[:117] + "..."


def environment_of(
    prepared: Plan,
    base: Mapping[str, str],
    request: Request,
    *,
    spool: Path,
    status: Path,
    building: Path | None,
    replaces: bool = False,
) -> dict[str, str]:
    """Make the environment in which the command of this plan starts, as a child, or in place of this process."""
    if prepared.images is None:
        return launch_environment.plain(base, simulated=request.simulated)
    return launch_environment.for_restore(
        base,
        spool=spool,
        status=status,
        image=prepared.images.folder,
        building=building,
        quiet=request.quiet,
        simulated=request.simulated,
        allowed=request.allowed,
        check=request.check,
        early=prepared.images.early if request.early else "",
        replaces=replaces,
    )


def begin_images(
    prepared: Plan, base: Mapping[str, str], session: Path, listener: Listener
) -> tuple[Plan, Path | None]:
    """Begin to make what images are still to be made, for the command of a session, and give the folder for its hook.

    Where that cannot be done the plan is a plain start.
    """
    wanted, make, placed = prepared.images, prepared.images and prepared.images.make, prepared.caches
    if not prepared.behind or not wanted or not make:
        return prepared, None
    from foundry.session import builder

    def all_of_it() -> None:
        make()
        if placed:
            caching.note_beside(wanted.folder, placed, base)

    try:
        return prepared, builder.begin(session, session / workspace.LOCK_NAME, wanted.first_places, all_of_it)
    except OSError as error:
        refused = FoundryError(f"the restore images cannot be made behind the start: {error.strerror or error}")
        listener.warn(f"{refused}; starting without restore")
        return replace(prepared, images=None, behind=False, refused=refused), None


def become(prepared: Plan, base: Mapping[str, str], request: Request, listener: Listener) -> NoReturn:
    """Replace this process by the command. Raises FoundryError if the kernel refuses to execute it."""
    found = prepared.executable
    hooked = launch_environment.plain(base, simulated=request.simulated)
    if prepared.images is not None and (place := prepared.place) is not None:
        try:
            folder = workspace.for_exec(place)
            spool, status = folder / workspace.SPOOL_NAME, folder / workspace.STATUS_NAME
            prepared, building = begin_images(prepared, base, folder, listener)
            hooked = environment_of(
                prepared, base, request, spool=spool, status=status, building=building, replaces=True
            )
        except OSError as error:
            listener.warn(f"no session folder in `{place.sessions}`: {error}; starting without restore")
    sys.stdout.flush()
    sys.stderr.flush()
    execute(found, hooked)


def execute(found: executables.Executable, environment: Mapping[str, str]) -> NoReturn:
    """Do the exec itself, with the signals that Python ignores at their default again."""
    import signal

    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(found.path, found.arguments, environment)
    except OSError as error:
        raise executables.could_not_start(found, error.errno or 0) from error
