"""`foundry verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import checking
from ..options import Allow, Archive, Json, Simulated

NAME = "verify"
SHORT = "Check an archive: digests and structure, or all there is."
EXIT_CODES = (
    "0    it is sound",
    "1    it is not sound, or cannot be read",
    "2    the command line does not say what to do",
    "3    it is sound, but lacks something: it says so itself, or something could not be looked at",
    "4    the archive was written by a newer foundry",
    "5    it is sound, but cannot be restored on this machine (`--host`, `--device`)",
    "125  foundry itself failed",
)


def command(
    context: typer.Context,
    archive: Archive,
    quick: Annotated[bool, typer.Option("--quick", help="Look at header, footer, table and summary only.")] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also check that every kernel is in its image with the same parameters, every pointer in known "
            "memory, every graph without a cycle.",
        ),
    ] = False,
    host: Annotated[
        bool,
        typer.Option(
            "--host", help="Also compare with this machine: may it be restored here? A command may follow `--`."
        ),
    ] = False,
    device: Annotated[
        bool,
        typer.Option(
            "--device",
            help="Also build every graph on a GPU through cuda-python, in a fresh process, and compare what the "
            "driver then tells of it.",
        ),
    ] = False,
    launch: Annotated[
        bool,
        typer.Option(
            "--launch",
            help="With `--device`: launch the graphs too, each on zeros and recorded contents, where all memory that "
            "it points to is known.",
        ),
    ] = False,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", min=1, help="With `--device`: how long a graph may take.")
    ] = checking.LIMIT_SECONDS,
    allow: Allow = None,
    sim: Simulated = False,
    json: Json = False,
) -> int:
    """Check an archive. Needs no GPU without `--device`.

    By default every section is unpacked and compared with its digest, and every index and count in it is checked.
    Problems are collected: one that cannot be decoded does not hide the others.
    """
    from foundry.compat.codes import require_allowable

    request = checking.Request(
        archive=archive,
        quick=quick,
        deep=deep,
        host=host,
        device=device,
        launch=launch,
        limit=limit,
        allowed=require_allowable(allow or ()),
        simulated=sim,
        json=json,
    )
    return checking.run(context.obj, request)
