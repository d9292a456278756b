"""`foundry restore`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

from foundry.compat import codes
from foundry.errors import UsageError
from foundry.session import restore

from .. import restoring
from ..context import Context
from ..options import RUN_CODES, Allow, JsonLine, OptionalArchive, Quiet, Simulated

NAME = "restore"
SHORT = "Run CMD with the graphs and kernels of an archive."
EXIT_CODES = (
    "0    the command ended well",
    *RUN_CODES,
    "with --on-mismatch fail also",
    "1    there is no such archive, or it cannot be read",
    "4    the archive was written by a newer foundry",
    "5    the archive must not be used here: another GPU model, driver, command or engine",
)
USAGE = "[OPTIONS] [ARCHIVE] -- CMD..."


class OnMismatch(str, Enum):
    """What to do when the archive cannot be used."""

    fallback = restoring.FALLBACK
    fail = restoring.FAIL


def command(
    context: typer.Context,
    archive: OptionalArchive = None,
    on_mismatch: Annotated[
        OnMismatch,
        typer.Option(
            metavar="[fallback|fail]",
            help="If the archive cannot be used: start the command without it, or fail.",
            case_sensitive=False,
        ),
    ] = OnMismatch.fallback,
    report: Annotated[
        Optional[Path],  # noqa: UP045 - see options.py
        typer.Option(
            metavar="FILE",
            help="Write what was restored, given up and skipped as JSON: when the command is ready, and at its end.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Replay each graph against its witness before it is used; give up what differs."),
    ] = False,
    early: Annotated[
        bool,
        typer.Option(
            "--early/--no-early",
            help="Make the driver and graphs ready while the command still imports, if its capture shows that it may.",
        ),
    ] = True,
    caches: Annotated[
        bool,
        typer.Option(
            "--caches/--no-caches", help="Put the archive's files of JIT caches in place. They stay there, for all."
        ),
    ] = True,
    no_prefetch: Annotated[
        bool,
        typer.Option("--no-prefetch", help="Do not read ahead the files that the archive names as read by a start."),
    ] = False,
    allow: Allow = None,
    simulated: Simulated = False,
    quiet: Quiet = False,
    json_line: JsonLine = False,
) -> int:
    """Run CMD and give it back the CUDA graphs and kernels of an archive.

    Without ARCHIVE the store is asked for the one of this command, as `foundry capture -- CMD` left it. What cannot be
    proven equal is given up before it is used, and the command's own capture runs instead. Where the archive was made
    on another machine or by another command, all of it is: `foundry verify --host` says what differs, by which codes.

    foundry becomes the command, unless --report, --json or --on-mismatch fail leave it something to do: then it stays
    its parent, and starts it again with address randomisation off should the address range be taken.
    """
    session: Context = context.obj
    if not session.command:
        raise UsageError("no command: put it after `--`", hint="`foundry restore -- python serve.py`")
    request = restore.Request(
        command=session.command,
        archive=archive,
        fail=on_mismatch is OnMismatch.fail,
        report=report,
        report_line=json_line,
        simulated=simulated,
        quiet=quiet,
        check=check,
        early=early,
        caches=caches,
        prefetch=not no_prefetch,
        allowed=codes.require_allowable(allow or ()),
    )
    return restoring.run(session, request)
