"""`foundry parity`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from foundry.errors import UsageError

from ..context import Context
from ..options import Simulated
from ..render import plain

NAME = "parity"
SHORT = "Run CMD and tell whether its graphs give what eager passes do."
EXIT_CODES = (
    "0    each comparison was equal, and says something",
    "1    graphs gave something else than eager passes",
    "2    the command line does not say what to do",
    "3    nothing differed, but that proves nothing: the command compared nothing, left something out, or did not end "
    "well",
    "125  foundry itself failed",
    "126  the command cannot be executed",
    "127  the command was not found",
)
USAGE = "[OPTIONS] -- CMD..."


def command(
    context: typer.Context,
    simulated: Simulated = False,
    json_line: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print all reports as one line of JSON, the last line on standard error: standard output is the "
            "command's.",
        ),
    ] = False,
) -> int:
    """Run CMD and gather what it finds when it compares its graphs with eager passes.

    CMD does that itself: in Python with `foundry.keyed.parity.compare`, in C with foundry_parity_run. Both know by
    `wanted()` and foundry_parity_wanted() that this command started them. Twins run the same rounds from the same
    state, one through the graphs, one eagerly, and all bytes are compared. Rounds must cross every seam of the key, and
    planted controls must be caught.

    CMD runs without the hook. To compare restored graphs: `foundry parity -- foundry restore FILE -- CMD`.
    """
    from foundry.session import parity

    session: Context = context.obj
    if not session.command:
        raise UsageError("no command: put it after `--`", hint="`foundry parity -- python compare.py`")
    outcome = parity.run(session.command, session.environment, simulated=simulated)
    if json_line:
        sys.stderr.write(json.dumps(outcome.as_dict()) + "\n")
        return outcome.exit_code
    for report in outcome.reports:
        session.note(plain(report.line()) + (", simulated" if simulated else ""))
    if outcome.problem:
        raise outcome.problem
    return outcome.exit_code
