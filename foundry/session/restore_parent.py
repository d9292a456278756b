"""A restore that stays the command's parent: to report, to end on a mismatch, to start again with fixed addresses."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foundry import env
from foundry.compat import codes
from foundry.errors import DiskFullError, FoundryError, MismatchError
from foundry.launch.supervisor import Ended, Supervisor
from foundry.session import builder, report
from foundry.session.capture_run import STOP_SECONDS
from foundry.session.listener import Listener
from foundry.session.restore import Plan, Request, begin_images, environment_of
from foundry.session.status import RANGE_TAKEN, Status
from foundry.session.workspace import Workspace

TICK_SECONDS = 0.02
"""Short, because a command whose restore is given up must be ended before it has done much."""
READY_TICK_SECONDS = 1.0
DISARMED = "mismatch-disarmed"
HOLD_ANY = "any"


@dataclass(frozen=True)
class Outcome:
    """How it went. The exit status is the command's unless Foundry ended it."""

    exit_code: int
    ended: Ended
    report: dict[str, object]
    problem: FoundryError | None


def run(prepared: Plan, base: Mapping[str, str], request: Request, listener: Listener) -> Outcome:
    """Run the command and wait for its end."""
    with contextlib.ExitStack() as stack:
        workspace = stack.enter_context(Workspace())
        # Before the supervisor, for which what runs then is none of the command's.
        prepared, building = begin_images(prepared, base, workspace.folder, listener)
        supervisor = stack.enter_context(Supervisor(workspace.folder))
        parent = _Parent(prepared, request, workspace, listener)
        hooked = environment_of(
            prepared, base, request, spool=workspace.spool, status=workspace.status, building=building
        )
        if prepared.restores:
            hooked[env.HOLD] = HOLD_ANY if request.fail else RANGE_TAKEN
        ended = supervisor.run(prepared.executable, hooked, tick=parent.tick)
        if parent.again:
            listener.warn("the address range was taken; starting again with address randomisation off")
            parent.start_again()
            hooked = environment_of(
                prepared, base, request, spool=parent.spool, status=parent.status.path, building=building
            )
            if request.fail:
                hooked[env.HOLD] = HOLD_ANY
            ended = supervisor.run(prepared.executable, hooked, tick=parent.tick, fixed_addresses=True)
        return parent.finish(ended)


class _Parent:
    """The state of one restore while its command runs."""

    def __init__(self, prepared: Plan, request: Request, workspace: Workspace, listener: Listener) -> None:
        self._plan = prepared
        self._request = request
        self._workspace = workspace
        self._listener = listener
        self.spool = workspace.spool
        self.status = Status(workspace.status)
        self.again = False
        self._second = False
        self._stopped_at = 0.0
        self._reason = ""
        self._started = time.monotonic()
        self._ready_after: float | None = None

    def start_again(self) -> None:
        """Prepare a second start of the command, with a spool and a status file of its own."""
        self.again = False
        self._second = True
        self._stopped_at = 0.0
        self._started = time.monotonic()
        self.spool = self._workspace.spool / "again"
        self.spool.mkdir(mode=0o700)
        self.status = Status(self._workspace.folder / "status-again")

    def tick(self, supervisor: Supervisor) -> float | None:
        """Look at what the hook says."""
        if not self._plan.restores:
            return None
        if self._stopped_at:
            if time.monotonic() - self._stopped_at > STOP_SECONDS:
                supervisor.stop(signal.SIGKILL)
                return None
            return TICK_SECONDS
        if self.status.read():
            if self.status.range_taken and not self._second:
                self.again = True
            elif self.status.disarmed and self._request.fail:
                role, self._reason = next(iter(self.status.disarmed.items()))
                self._reason = f"{role}: {self._reason}"
            if self.again or self._reason:
                self._stopped_at = time.monotonic()
                supervisor.stop()
            elif self.status.ready and self._ready_after is None:
                self._ready_after = time.monotonic() - self._started
                self._write_report(self._report(None))
        return TICK_SECONDS if self._ready_after is None else READY_TICK_SECONDS

    def finish(self, ended: Ended) -> Outcome:
        """After the command's end: the last report, and how it went."""
        problem: FoundryError | None = None
        self.status.read()
        if self.status.disarmed and self._request.fail and not self._reason:
            role, reason = next(iter(self.status.disarmed.items()))
            self._reason = f"{role}: {reason}"
        if self._reason:
            given = [code for part in self._reason.partition(": ")[2].split("; ") if (code := codes.code_of(part))]
            again = codes.hint(given)
            problem = MismatchError(
                f"the restore was given up, so the command was ended: {self._reason}",
                code=given[0] if given else DISARMED,
                hint=f"{again}; or let it start without restore: `--on-mismatch fallback`",
            )
        final = self._report(ended)
        final["error"] = str(problem) if problem else None
        self._write_report(final)
        return Outcome(problem.exit_code if problem else ended.code, ended, final, problem)

    def _report(self, ended: Ended | None) -> dict[str, object]:
        fault = builder.fault(self._workspace.folder) if self._plan.behind else ""
        result = report.of_restore(self._plan, self.spool, self.status, fault)
        result["ready_seconds"] = None if self._ready_after is None else round(self._ready_after, 6)
        result["fixed_addresses"] = self._second
        result["command_exit_code"] = ended.code if ended else None
        return result

    def _write_report(self, content: dict[str, object]) -> None:
        path = self._request.report
        if path is None:
            return
        try:
            write_report(path, content)
        except FoundryError as error:
            self._listener.warn(str(error))


def write_report(path: Path, content: Mapping[str, object]) -> None:
    """Write a report under its final name only when it is whole; one that stands there is replaced."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DiskFullError(f"cannot write the report `{path}`: {error.strerror}") from error
