"""What `foundry capture` does. Imports neither typer nor rich, because the command is waiting to start."""

from __future__ import annotations

import sys
from pathlib import Path

from foundry.session import capture, capture_run

from .context import Context
from .plain import read
from .version import version


def request_of(arguments: list[str], command: list[str] | None) -> tuple[capture_run.Request, bool] | None:
    """Read plain, whole and correct arguments, and whether a line of JSON is wanted. None for all else, as `read`."""
    if arguments[:1] != ["capture"] or not command:
        return None
    plain = read(
        arguments[1:],
        flags=(
            *("--force", "--stop-when-ready", "--sim", "--all-kernels", "--thin", "--witness", "--no-contents"),
            "--caches",
            "--no-caches",
            "--prefetch",
            "--no-prefetch",
            *("--prove", "--scrub", "--quiet", "--json"),
        ),
        values=("--output", "--update", "--ready", "--ready-log", "--ready-timeout"),
        short={"-o": "--output", "-f": "--force", "-q": "--quiet"},
    )
    if plain is None:
        return None
    timeout = plain.values.get("--ready-timeout")
    try:
        seconds = None if timeout is None else float(timeout)
    except ValueError:
        return None
    output, update = plain.values.get("--output"), plain.values.get("--update")
    request = capture_run.Request(
        command=command,
        output=Path(output) if output else None,
        force="--force" in plain.flags,
        ready_url=plain.values.get("--ready"),
        ready_log=plain.values.get("--ready-log"),
        ready_timeout=seconds,
        stop_when_ready="--stop-when-ready" in plain.flags,
        simulated="--sim" in plain.flags,
        all_kernels="--all-kernels" in plain.flags,
        thin="--thin" in plain.flags,
        witness="--witness" in plain.flags,
        prove="--prove" in plain.flags,
        scrub="--scrub" in plain.flags,
        contents="--no-contents" not in plain.flags,
        caches="--no-caches" not in plain.flags,
        prefetch="--prefetch" in plain.flags,
        update=Path(update) if update else None,
        quiet="--quiet" in plain.flags,
    )
    return request, "--json" in plain.flags


def run(session: Context, request: capture_run.Request, *, json_line: bool) -> int:
    """Capture, and return the exit status."""
    session.quiet = request.quiet
    outcome = capture.run(request, session.environment, session, version=version())
    if json_line:
        import json

        sys.stderr.write(json.dumps(outcome.as_dict()) + "\n")
    elif outcome.problem:
        outcome.problem.exit_code = outcome.exit_code
        raise outcome.problem
    return outcome.exit_code
