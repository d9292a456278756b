"""`foundry doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..context import Context
from ..options import Json
from ..render import print_json, print_table

if TYPE_CHECKING:
    from foundry.session.doctor import Check

NAME = "doctor"
HINT = "hint:"
SHORT = "Tell what this machine has and lacks."
EXIT_CODES = (
    "0  nothing is wrong here; a machine without a GPU is sound",
    "1  something is; each line says what, and what to do",
    "2  the command line does not say what to do",
)


def command(
    context: typer.Context,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test/--no-self-test", help="Capture and restore a small program on the simulator, in 10 s."
        ),
    ] = True,
    device: Annotated[bool, typer.Option("--device", help="Run the self test on the first GPU, too.")] = False,
    table: Annotated[bool, typer.Option("--table", help="Print the driver functions that the hook knows.")] = False,
    json: Json = False,
) -> int:
    """Tell what this machine has, what is in the way of a capture or a restore, and what to do about it.

    The driver is asked in a process of its own, with a time limit and without a context: nothing on a GPU changes,
    except with --device.
    """
    session: Context = context.obj
    if table:
        return _print_table(json)
    from foundry.session import doctor

    with session.step("asking the driver"):
        checks = doctor.examine(doctor.look(session.environment))
    for on_device in (False, True):
        if device if on_device else self_test:
            with session.step("testing the hook"):
                checks.append(doctor.test(session.environment, checks, device=on_device))
    if json:
        print_json(
            {
                "checks": [check.as_dict() for check in checks],
                "gpu": not doctor.obstacles(checks, doctor.GPU),
                "simulator": not doctor.obstacles(checks, doctor.SIMULATOR),
                "sound": doctor.sound(checks),
            }
        )
    else:
        show(checks)
    return 0 if doctor.sound(checks) else 1


def show(checks: list[Check]) -> None:
    """Print what was found, each hint under its line, and what follows."""
    from foundry.session import doctor

    rows = []
    for check in checks:
        rows.append((check.state, check.what, check.found))
        if check.hint and check.state != doctor.GOOD:
            rows.append(("", "", f"{HINT} {check.hint}"))
    print_table([("", "left"), ("what", "left"), ("found", "left")], rows)
    print()
    for line in doctor.verdict(checks):
        print(line)


def _print_table(json: bool) -> int:
    from foundry.native import Hook

    names = ("family", "symbol", "since", "capture", "restore")
    rows = Hook().table()
    if json:
        print_json([dict(zip(names, row, strict=False)) for row in rows])
    else:
        print_table([(name, "left") for name in names], rows)
    return 0
