"""What `foundry restore` does. Imports neither typer nor rich, because the command is waiting to start."""

from __future__ import annotations

import sys
from pathlib import Path

from foundry.compat import codes
from foundry.session import restore

from .context import Context
from .plain import read

FALLBACK = "fallback"
FAIL = "fail"


def request_of(arguments: list[str], command: list[str] | None) -> restore.Request | None:
    """Read plain, whole and correct arguments. None for all else: then typer reads them, and says what is wrong."""
    if arguments[:1] != ["restore"] or not command:
        return None
    plain = read(
        arguments[1:],
        flags=(
            *("--sim", "--quiet", "--json", "--check", "--early", "--no-early", "--caches", "--no-caches"),
            "--no-prefetch",
        ),
        values=("--on-mismatch", "--report"),
        repeated=("--allow",),
        short={"-q": "--quiet"},
        most_others=1,
    )
    if plain is None or (mismatch := plain.values.get("--on-mismatch", FALLBACK)) not in (FALLBACK, FAIL):
        return None
    report = plain.values.get("--report")
    return restore.Request(
        command=command,
        archive=Path(plain.others[0]) if plain.others else None,
        fail=mismatch == FAIL,
        report=Path(report) if report else None,
        report_line="--json" in plain.flags,
        simulated="--sim" in plain.flags,
        quiet="--quiet" in plain.flags,
        check="--check" in plain.flags,
        early="--no-early" not in plain.flags,
        caches="--no-caches" not in plain.flags,
        prefetch="--no-prefetch" not in plain.flags,
        allowed=codes.require_allowable(plain.repeated.get("--allow", ())),
    )


def run(session: Context, request: restore.Request) -> int:
    """Become the command, or run it and return its exit status."""
    session.quiet = request.quiet
    plan = restore.plan(request, session.environment, session)
    if not request.needs_parent:
        restore.become(plan, session.environment, request, session)
    import json

    from foundry.session import restore_parent

    outcome = restore_parent.run(plan, session.environment, request, session)
    if request.report_line:
        sys.stderr.write(json.dumps(outcome.report) + "\n")
    elif outcome.problem:
        raise outcome.problem
    return outcome.exit_code
