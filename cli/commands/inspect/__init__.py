"""`foundry inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ...existing import require
from ...options import READ_CODES, Archive, Json

if TYPE_CHECKING:
    from foundry.archive import Summary

NAME = "inspect"
SHORT = "Tell what is in an archive."
EXIT_CODES = (
    READ_CODES[0],
    "1  the archive cannot be read: not there, damaged, or not an archive; or it has no such graph, node or process",
    *READ_CODES[2:],
    "125  the report cannot be written",
)


def command(
    context: typer.Context,
    archive: Archive,
    graphs: Annotated[
        bool, typer.Option("--graphs", help="All graphs: size, topology group, restorable or why not.")
    ] = False,
    graph: Annotated[
        Optional[str],  # noqa: UP045 - see options.py
        typer.Option(
            "--graph", metavar="KEY", help="One graph, by its key or set/key: nodes, edges, what they point to."
        ),
    ] = None,
    node: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--node", metavar="N", help="With --graph: one node in full. C/N is one of child graph C."),
    ] = None,
    dot: Annotated[bool, typer.Option("--dot", help="With --graph: print it for Graphviz.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="With --graph: print a drawing of it.")] = False,
    kernels: Annotated[bool, typer.Option("--kernels", help="Kernels and their images.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Arenas, allocations, and what graphs refer to.")] = False,
    files: Annotated[bool, typer.Option("--files", help="Files of JIT caches, and those that a start reads.")] = False,
    timeline: Annotated[bool, typer.Option("--timeline", help="What the start of the program was spent on.")] = False,
    restore_report: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--restore-report",
            metavar="FILE",
            help="With --timeline or --html: the report that `foundry restore --report` wrote, to stand beside it.",
            show_default=False,
        ),
    ] = None,
    findings: Annotated[bool, typer.Option("--findings", help="All findings.")] = False,
    sections: Annotated[bool, typer.Option("--sections", help="The table of contents.")] = False,
    process: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--process", metavar="ROLE", help="Only what belongs to this process."),
    ] = None,
    html: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--html", metavar="FILE", help="Write a report to look at: one HTML file.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --html: replace the file if it exists.")] = False,
    json: Json = False,
) -> None:
    """Tell what is in an archive: one screen, or one part of it in full. Needs no GPU."""
    from . import run
    from .request import requested

    flags = {
        "graphs": graphs,
        "graph": graph is not None,
        "kernels": kernels,
        "memory": memory,
        "files": files,
        "timeline": timeline,
        "findings": findings,
        "sections": sections,
        "html": html is not None,
    }
    request = requested(
        archive,
        [view for view, wanted in flags.items() if wanted],
        graph=graph,
        node=node,
        process=process,
        drawings=[name for name, wanted in (("dot", dot), ("svg", svg)) if wanted],
        restore_report=restore_report,
        html=html,
        force=force,
        json=json,
    )
    run.run(request, context.obj)


def read(path: Path) -> Summary:
    """Read an archive's summary; ArchiveNotFoundError if there is no such file."""
    from foundry import archive

    require(path)
    return archive.summary(path)
