"""`foundry capture`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from foundry.errors import UsageError
from foundry.session import capture_run

from .. import capturing
from ..context import Context
from ..options import RUN_CODES, JsonLine, Quiet, Simulated

NAME = "capture"
SHORT = "Run CMD and archive its CUDA graphs and kernels."
EXIT_CODES = (
    "0    the command ended well and its archive is written",
    RUN_CODES[0],
    "3    the archive is written, and --prove or --scrub could not do all of it",
    "5    --update: the archive must not be used here, or the run does not fit it; it stays as it is",
    *RUN_CODES[1:],
)
USAGE = "[OPTIONS] -- CMD..."


def command(
    context: typer.Context,
    output: Annotated[
        Optional[Path],  # noqa: UP045 - see options.py
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write here instead of into the store.", show_default=False
        ),
    ] = None,
    update: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="FILE",
            help="Run CMD with the graphs of this archive, and add those that it captures beside them.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace a file that stands there.")] = False,
    ready: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="URL", help="The command is ready once this address answers with 2xx.", show_default=False
        ),
    ] = None,
    ready_log: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="REGEX",
            help="The command is ready once it prints a line in which this is found.",
            show_default=False,
        ),
    ] = None,
    ready_timeout: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="S", help="Wait no longer than this for it to be ready.", show_default=False),
    ] = None,
    stop_when_ready: Annotated[
        bool, typer.Option("--stop-when-ready", help="End the command once it is ready and the archive is written.")
    ] = False,
    simulated: Simulated = False,
    all_kernels: Annotated[
        bool, typer.Option("--all-kernels", help="Keep every kernel image that was loaded, not only those of graphs.")
    ] = False,
    thin: Annotated[
        bool,
        typer.Option("--thin", help="Leave out kernels that library files here hold. A restore needs these files."),
    ] = False,
    witness: Annotated[
        bool,
        typer.Option(
            "--witness",
            help="Replay each graph on stated numbers, and keep digests of the results for restore --check.",
        ),
    ] = False,
    no_contents: Annotated[
        bool,
        typer.Option(
            "--no-contents",
            help="Do not keep what CMD puts into memory that it allocates while it captures. "
            "Sound only if its graphs write there first.",
        ),
    ] = False,
    caches: Annotated[
        bool,
        typer.Option(
            "--caches/--no-caches",
            help="Keep the files of JIT caches (Triton, inductor and others) that CMD needs, too.",
        ),
    ] = True,
    prefetch: Annotated[
        bool,
        typer.Option(
            "--prefetch/--no-prefetch", help="Keep the names of the files that CMD reads until it is ready, too."
        ),
    ] = False,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Run CMD twice, with its memory elsewhere, and prove which words of its graphs are addresses.",
        ),
    ] = False,
    scrub: Annotated[
        bool,
        typer.Option(
            "--scrub",
            help="Run CMD three or four times, and zero what is noise in the parameters of its graphs where a replay "
            "gives the same without it. Implies --prove and --witness.",
        ),
    ] = False,
    quiet: Quiet = False,
    json_line: JsonLine = False,
) -> int:
    """Run CMD and write its CUDA graphs and kernels to an archive.

    Without -o the archive goes into the store, where `foundry restore -- CMD` finds it again.

    A server runs for ever: the archive is written while it serves, once it is ready (--ready, --ready-log, or the
    program says so itself), and again at its end if there is more. Ctrl-C reaches the command and is waited for.
    """
    session: Context = context.obj
    if not session.command:
        raise UsageError("no command: put it after `--`", hint="`foundry capture -- python serve.py`")
    request = capture_run.Request(
        command=session.command,
        output=output,
        force=force,
        ready_url=ready,
        ready_log=ready_log,
        ready_timeout=ready_timeout,
        stop_when_ready=stop_when_ready,
        simulated=simulated,
        all_kernels=all_kernels,
        thin=thin,
        witness=witness,
        prove=prove,
        scrub=scrub,
        contents=not no_contents,
        caches=caches,
        prefetch=prefetch,
        update=update,
        quiet=quiet,
    )
    return capturing.run(session, request, json_line=json_line)
