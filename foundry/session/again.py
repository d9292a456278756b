"""Running a command that was captured once more: for a proof, and to see whether its graphs need their noise."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from foundry.errors import NotProvenError
from foundry.launch import environment as launch_environment
from foundry.launch.executable import Executable
from foundry.launch.supervisor import Ended, Supervisor
from foundry.session import proving, scrubbing
from foundry.session.capture_run import TICK_SECONDS, CaptureRun, Outcome, Request, how
from foundry.session.listener import Listener
from foundry.session.product import Product
from foundry.session.proving import Packed
from foundry.session.workspace import Workspace

if TYPE_CHECKING:
    from foundry.findings import Finding
    from foundry.model import Capture

LEAST_SECONDS = 120.0
TIMES_AS_LONG = 5.0
"""How long a run without noise may take, of the first run and at least: its kernels might never end."""


@dataclass(frozen=True)
class Command:
    """What is run again."""

    request: Request
    found: Executable
    environment: Mapping[str, str]
    listener: Listener


def proven(command: Command, capture: CaptureRun, outcome: Outcome) -> Outcome:
    """Add a proof to a capture that went well, and scrub it if that is asked for."""
    first, written = capture.packed, outcome.product
    if outcome.problem or outcome.exit_code or first is None or written is None:
        return outcome
    other, ended = _second(command, first)
    if other is None or _failed(ended, command.request):
        why = "left nothing to compare" if other is None else f"ended with {how(ended)}"
        problem = NotProvenError(f"not proven: the second run of the command {why}; the archive is written")
        return replace(outcome, exit_code=problem.exit_code, problem=problem)
    found = proving.compare(first, other, written)
    capture.tell(found.product, found.line())
    code = found.problem.exit_code if found.problem else outcome.exit_code
    outcome = replace(outcome, exit_code=code, problem=found.problem, product=found.product, proven=found)
    if not command.request.scrub:
        return outcome
    limit = max(LEAST_SECONDS, TIMES_AS_LONG * outcome.seconds)
    scrubbed = scrubbing.scrub(found, other, lambda candidate, what: _third(command, candidate, what, limit))
    capture.tell(scrubbed.product, scrubbed.line())
    worse = found.problem or scrubbed.problem
    code = worse.exit_code if worse else outcome.exit_code
    return replace(outcome, exit_code=code, problem=worse, product=scrubbed.product, scrubbed=scrubbed)


def _failed(ended: Ended, request: Request) -> bool:
    return bool(ended.code) and not (ended.asked and request.stop_when_ready)


def _second(command: Command, first: Packed) -> tuple[Packed | None, Ended]:
    """Run the command once more, with its memory elsewhere. What it prints was said once: it goes to standard error."""
    request, listener = command.request, command.listener
    listener.note("running the command once more, with its memory elsewhere, for the proof")
    with Workspace() as workspace:
        # What is left out of the archive makes no difference to a comparison.
        run = _Second(replace(request, thin=False), workspace, workspace.folder, False, listener)
        run.context = {}
        hooked = launch_environment.for_capture(
            proving.elsewhere(command.environment, first.capture, simulated=request.simulated),
            spool=workspace.spool,
            status=workspace.status,
            quiet=True,
            simulated=request.simulated,
            witness=request.witness,
        )
        hooked.update(proving.elsewhere({}, first.capture, simulated=False))
        ended = _run(command, workspace, run, hooked)
        return run.packed, ended


def _third(command: Command, candidate: Capture, what: str, limit: float) -> scrubbing.Answer:
    """Run the command once more with its graphs without noise, each of which is compared before it is used."""
    request, listener = command.request, command.listener
    listener.note(f"running the command once more, with {what} made zero, to compare what they give")
    with Workspace() as workspace:
        images = scrubbing.images_of(candidate, workspace.folder, command.found, command.environment, listener)
        run = _Third(request, workspace, limit, listener)
        hooked = launch_environment.for_restore(
            command.environment,
            spool=workspace.spool,
            status=workspace.status,
            image=images,
            quiet=True,
            simulated=request.simulated,
            only_equal=True,
        )
        ended = _run(command, workspace, run, hooked)
        if run.late:
            return scrubbing.Answer(f"without noise the command did not end within {limit:.0f} s")
        if _failed(ended, request):
            return scrubbing.Answer(f"without noise the command ended with {how(ended)}", final=ended.asked)
        return scrubbing.answer_of(workspace.spool)


def _run(command: Command, workspace: Workspace, run: CaptureRun, hooked: Mapping[str, str]) -> Ended:
    with Supervisor(workspace.folder, workspace.worth_keeping) as supervisor:
        on_line = run.log_watch.look_at if run.log_watch else None
        ended = supervisor.run(command.found, hooked, tick=run.tick, on_line=on_line, all_to_stderr=True)
        run.finish(ended, 0.0)
    return ended


class _Second(CaptureRun):
    """The second run of a command: packed, and not written."""

    doing = "comparing"

    def _put(self, capture: Capture, findings: list[Finding], *, again: bool) -> Product | None:
        return None


class _Third(CaptureRun):
    """The run of a command without noise: nothing is packed. `late` tells that it had to be ended."""

    doing = "comparing"

    def __init__(self, request: Request, workspace: Workspace, limit: float, listener: Listener) -> None:
        super().__init__(request, workspace, workspace.folder, False, listener)
        self._limit = time.monotonic() + limit
        self.late = False

    def tick(self, supervisor: Supervisor) -> float | None:
        """Look for readiness, and for a command that does not end."""
        if not self._stopped_at and time.monotonic() > self._limit:
            self.late = True
            return self._stop(supervisor)
        pause = super().tick(supervisor)
        return TICK_SECONDS if pause is None else pause

    def _write(self) -> None:
        pass
