"""Options that several commands have, declared once."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Annotated, Optional

import typer

from .completion import allowable_codes, archive_names

CODES_WIDTH = 76

Simulated = Annotated[
    bool, typer.Option("--sim", help="Run on the simulated GPU that comes with foundry; every report says so.")
]
Allow = Annotated[
    Optional[list[str]],  # noqa: UP045 - as below
    typer.Option(
        "--allow",
        metavar="CODE",
        help="Let a difference from the capture pass, by its code; may be repeated. `foundry verify --host` shows "
        "what differs.",
        show_default=False,
        autocompletion=allowable_codes,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
JsonLine = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the report as one line of JSON, the last line on standard error: standard output is the command's.",
    ),
]
Archive = Annotated[
    Path,
    typer.Argument(metavar="ARCHIVE", help="An archive file.", show_default=False, autocompletion=archive_names),
]
OptionalArchive = Annotated[
    Optional[Path],  # noqa: UP045 - typer evaluates it, and Python 3.10's typer knows this form in all its versions
    typer.Argument(
        metavar="ARCHIVE",
        help="An archive file. Left out, the store is asked for this command's.",
        show_default=False,
        autocompletion=archive_names,
    ),
]


def exit_codes(*lines: str) -> str:
    """Lay out the list of exit codes that a command's help ends with."""
    return "Exit codes:\n\n\b\n" + "\n".join(_wrapped(line) for line in lines)


def _wrapped(line: str) -> str:
    """Wrap a line, the text of a code under itself: the parser leaves this list as it is."""
    code = re.match(r"\d+ +", line)
    rest = "  " + " " * (len(code[0]) if code else 0)
    return textwrap.fill(line, CODES_WIDTH, initial_indent="  ", subsequent_indent=rest, break_on_hyphens=False)


RUN_CODES = (
    "2    the command line does not say what to do",
    "125  foundry itself failed",
    "126  the command cannot be executed, or cannot be hooked",
    "127  the command was not found",
    "any other is the command's own; 128+N if signal N ended it",
)
READ_CODES = (
    "0  done",
    "1  the archive cannot be read: not there, damaged, or not an archive",
    "2  the command line does not say what to do",
    "4  the archive was written by a newer foundry",
)
