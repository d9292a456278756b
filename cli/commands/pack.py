"""`foundry pack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from ..context import Context
from ..options import Json, Quiet
from ..render import print_json

NAME = "pack"
SHORT = "Finish what a capture that was killed left."
EXIT_CODES = (
    "0    the archive is written",
    "2    the command line does not say what to do",
    "3    the archive is written, but what was recorded last is damaged and left out",
    "125  there is nothing to pack, or the archive cannot be written",
)


def command(
    context: typer.Context,
    spool: Annotated[
        Optional[Path],  # noqa: UP045 - see options.py
        typer.Argument(
            metavar="SPOOL",
            help="The session folder that was left; `foundry list` and `foundry doctor` name it.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write here instead of where the capture would have written.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace a file that stands there.")] = False,
    all_kernels: Annotated[
        bool, typer.Option("--all-kernels", help="Keep every kernel image that was loaded, not only those of graphs.")
    ] = False,
    thin: Annotated[
        bool, typer.Option("--thin", help="Leave out kernels that library files here hold, as `capture --thin` does.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Do not remove the session folder afterwards.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Write the archive that a capture would have written, had foundry not been killed.

    The hook writes down each thing as it happens, so that a kill at any moment loses at most the last one. The
    session folder is removed once its archive is whole; one that is not packed goes after a week.
    """
    from foundry.session import packing
    from foundry.session.product import worst_findings

    from ..version import version

    session: Context = context.obj
    session.quiet = quiet or json
    request = packing.Request(spool, output, force, all_kernels, thin, keep)
    outcome = packing.run(request, session.environment, session, version=version())
    if json:
        print_json(outcome.as_dict())
        return outcome.exit_code
    session.note(f"wrote {outcome.product.line()}")
    if outcome.product.left_out_note:
        session.note(f"  {outcome.product.left_out_note}")
    for line in worst_findings(outcome.product.findings):
        session.note(f"  {line}")
    if outcome.torn:
        session.warn(f"what was recorded last is damaged and left out; `{outcome.spool}` is kept")
    return outcome.exit_code
