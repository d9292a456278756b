"""`foundry image`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from ..context import Context
from ..options import Archive, Json, Quiet
from ..render import print_json

NAME = "image"
SHORT = "Make what a program maps that embeds the restore engine."
EXIT_CODES = (
    "0    the image is written",
    "1    the archive cannot be read, or has no such process",
    "2    the command line does not say what to do",
    "4    the archive was written by a newer foundry",
    "125  the image cannot be written, or a file stands there",
)


def command(
    context: typer.Context,
    archive: Archive,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.", show_default=False)
    ],
    process: Annotated[
        Optional[str],  # noqa: UP045 - see options.py
        typer.Option("--process", metavar="ROLE", help="Which process, if there are several.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace a file that stands there.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Write the restore image of an archive's process, for `foundry_embed_restore`.

    An image is for this build of foundry only, so make it where the program is installed. `foundry restore` makes
    its own.
    """
    from foundry.session import embedding

    session: Context = context.obj
    session.quiet = quiet or json
    made = embedding.run(embedding.Request(archive, output, process, force))
    if json:
        print_json(made.as_dict())
    else:
        session.note(f"wrote {made.path}: {made.graphs} graphs of `{made.role}`, {made.size} bytes")
    return 0
