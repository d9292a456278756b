"""What `foundry restore` does. Imports neither typer nor rich, because the command is waiting to start."""

from __future__ import annotations

import sys
from pathlib import Path

from foundry.compat import codes
from foundry.session import restore

from .context import Context

FALLBACK = "fallback"
FAIL = "fail"


def request_of(arguments: list[str], command: list[str] | None) -> restore.Request | None:
    """Read plain, whole and correct arguments. None for all else: then typer reads them, and says what is wrong."""
    if arguments[:1] != ["restore"] or not command:
        return None
    flags = {"--sim": False, "--quiet": False, "--json": False, "--check": False}
    values: dict[str, str] = {}
    allowed: list[str] = []
    archives: list[str] = []
    words = iter(arguments[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if word == "-q":
            flags["--quiet"] = True
        elif word in flags:
            flags[word] = True
        elif name in ("--on-mismatch", "--report"):
            values[name] = value if equals else next(words, "")
        elif name == "--allow":
            allowed.append(value if equals else next(words, ""))
        elif word.startswith("-") or archives:
            return None
        else:
            archives.append(word)
    mismatch = values.get("--on-mismatch", FALLBACK)
    if mismatch not in (FALLBACK, FAIL) or "" in (*values.values(), *allowed, *archives):
        return None
    return restore.Request(
        command=command,
        archive=Path(archives[0]) if archives else None,
        fail=mismatch == FAIL,
        report=Path(values["--report"]) if "--report" in values else None,
        report_line=flags["--json"],
        simulated=flags["--sim"],
        quiet=flags["--quiet"],
        check=flags["--check"],
        allowed=codes.require_allowable(allowed),
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
