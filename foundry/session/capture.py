"""`foundry capture` from start to end."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import env
from foundry.compat import gpu, peer
from foundry.compat.compare import ARGUMENTS
from foundry.errors import ArchiveExistsError, FoundryError, UsageError
from foundry.launch import environment as launch_environment
from foundry.launch import executable as executables
from foundry.launch import python_options
from foundry.launch.supervisor import Supervisor
from foundry.session import context
from foundry.session.capture_run import CaptureRun, Outcome, Request
from foundry.session.listener import Listener
from foundry.session.record import Record
from foundry.session.workspace import Workspace, left_overs, remove_old_left_overs
from foundry.store import catalog, key, location

if TYPE_CHECKING:
    from foundry.model import Capture as Model


def run(request: Request, environment: Mapping[str, str], listener: Listener, *, version: str) -> Outcome:
    """Run the command under the hook and write its archive. Raises FoundryError if the command was not started.

    If it is to be proven, the command runs a second time after that, and to be scrubbed a third time.
    """
    if request.update is not None:
        from foundry.session import updating

        return updating.run(request, environment, listener, version=version)
    if request.scrub:
        request = replace(request, prove=True, witness=True)
    if not request.contents:
        environment = {**environment, env.CONTENTS: "0"}
    if request.prove and (request.ready_url or request.ready_log) and not request.stop_when_ready:
        raise UsageError(
            "to be proven, the command must run twice, and a server does not end by itself",
            hint="add `--stop-when-ready`",
        )
    if warning := peer.warning(peer.quick()):
        listener.warn(warning)
    if odd := python_options.warning(environment):
        listener.warn(odd)
    found = executables.find(request.command, environment)
    executables.require_hookable(found, environment)
    if told := python_options.note(request.command, environment):
        listener.note(told)
    target, may_replace = _target(request, found, environment, listener)
    known = context.of_command(request.command, environment, version=version, simulated=request.simulated)
    _tell_left_overs(known, listener)
    with Workspace() as workspace:
        capture = CaptureRun(request, workspace, target, may_replace, listener)
        capture.context = known
        capture.lean = lambda whole: _lean(whole, found, environment)
        workspace.note(
            Record(known, found.path, str(target), request.all_kernels, request.thin, started=int(time.time()))
        )
        hooked = launch_environment.for_capture(
            environment,
            spool=workspace.spool,
            status=workspace.status,
            quiet=True,
            simulated=request.simulated,
            witness=request.witness,
            opened=capture.recording_files(environment),
        )
        started = time.monotonic()
        with Supervisor(workspace.folder, workspace.worth_keeping) as supervisor, capture.watching_caches(environment):
            on_line = capture.log_watch.look_at if capture.log_watch else None
            ended = supervisor.run(found, hooked, tick=capture.tick, on_line=on_line)
            if supervisor.fault:
                listener.warn(f"stopped looking whether it is ready: {supervisor.fault}")
            outcome = capture.finish(ended, time.monotonic() - started)
        if not request.prove:
            return outcome
        from foundry.session import again

        return again.proven(again.Command(request, found, environment, listener), capture, outcome)


def _lean(capture: Model, found: executables.Executable, environment: Mapping[str, str]) -> Model:
    from foundry.session import thin

    return thin.leave_out(capture, thin.Libraries(found, environment))


def _tell_left_overs(known: Mapping[str, str], listener: Listener) -> None:
    """Tell of an earlier capture of the same command that was killed, and clear away what is too old."""
    remove_old_left_overs()
    for one in left_overs():
        if one.record.context.get(ARGUMENTS) == known[ARGUMENTS]:
            listener.note(f"an earlier capture of this command was killed; `foundry pack {one.folder}` finishes it")


def _target(
    request: Request, found: executables.Executable, environment: Mapping[str, str], listener: Listener
) -> tuple[Path, bool]:
    """Decide where the archive goes, and whether it may replace what stands there. Fail now, not after the run."""
    if request.output is None:
        place = location.find(environment)
        if place.note:
            listener.warn(place.note)
        catalog.remove_partial(place)
        name = key.command_key(
            found.path,
            request.command,
            folder=key.working_folder(),
            gpus=gpu.expected_models(environment, simulated=request.simulated),
            environment=environment,
            salt=place.salt(),
        ).name
        return place.writable / name, True
    target = executables.absolute(request.output)
    if target.exists() and not target.is_file():
        what = "a folder" if target.is_dir() else "not a regular file"
        raise ArchiveExistsError(f"`{target}` is {what}", hint="name a file: `-o FILE`")
    if target.exists() and not request.force:
        raise ArchiveExistsError(f"`{target}` exists", hint="replace it with `--force`, or name another file")
    if not target.parent.is_dir():
        raise FoundryError(f"no folder `{target.parent}` to write `{target.name}` into", hint="make it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise FoundryError(f"`{target.parent}` cannot be written", hint="name a file elsewhere: `-o FILE`")
    return target, request.force
