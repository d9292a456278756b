"""`foundry doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..context import Context
from ..options import Json
from ..render import print_json, print_table

NAME = "doctor"
SHORT = "Tell what this machine has and lacks."
EXIT_CODES = ("0    nothing speaks against a capture or a restore here", "1    something does; each line says what")


def command(
    context: typer.Context,
    table: Annotated[bool, typer.Option("--table", help="Print the driver functions that the hook knows.")] = False,
    json: Json = False,
) -> int:
    """Tell what this machine has, and what is missing for a capture or a restore. Touches no GPU."""
    session: Context = context.obj
    if table:
        return _print_table(json)
    from foundry.session import doctor

    checks = doctor.examine(session.environment)
    if json:
        print_json([{"what": check.what, "state": check.state, "found": check.found} for check in checks])
    else:
        print_table(
            [("", "left"), ("what", "left"), ("found", "left")],
            [(check.state, check.what, check.found) for check in checks],
        )
    return 1 if any(check.state == doctor.BAD for check in checks) else 0


def _print_table(json: bool) -> int:
    from foundry.native import Hook

    names = ("family", "symbol", "since", "capture", "restore")
    rows = Hook().table()
    if json:
        print_json([dict(zip(names, row, strict=False)) for row in rows])
    else:
        print_table([(name, "left") for name in names], rows)
    return 0
