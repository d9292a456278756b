"""Finds the one graph that a key means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundry.errors import NotInArchiveError, UsageError

from .processes import chosen
from .request import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from foundry.archive.opened import Opened
    from foundry.describe.documents import Graph, GraphRow
    from foundry.model import Process
    from foundry.model.reads import Index, Reads

MOST_CANDIDATES = 8


def document_of(opened: Opened, request: Request, *, parameters: bool) -> Graph:
    """Describe the graph that is asked for; with `--node`, of its nodes only that one."""
    from foundry.describe.graphs import Graphs

    index, row = _find(opened, request)
    process = opened.process(index)
    graphs = Graphs(process, _reads(opened, process) if parameters else None)
    if request.node is None:
        return graphs.document(row["index"], parameters=parameters)
    place = request.node
    body = graphs.body_at(row["index"], place.way) if place.way else place.body
    graph = graphs.document(
        row["index"], parameters=parameters, wanted=lambda number, node: (number, node) == (body, place.index)
    )
    if not any(found["nodes"] for found in graph["contents"]):
        raise NotInArchiveError(f"graph `{request.graph}` has no node {place.text}", hint=_numbers(row))
    return graph


def _reads(opened: Opened, process: Process) -> Callable[[Index], Reads]:
    """Give what looks into the code of launches, as far as the archive has it."""
    from foundry.machine import reads_of

    return lambda rows: reads_of(process, opened.held_blob, rows)


def _numbers(row: GraphRow) -> str:
    if row["bodies"] > 1:
        return (
            f"it has {row['nodes']} nodes in itself and {row['bodies'] - 1} child graphs; without `--node` it shows all"
        )
    return f"its nodes are 0 to {row['nodes'] - 1}" if row["nodes"] else "it has no nodes"


def _find(opened: Opened, request: Request) -> tuple[int, GraphRow]:
    from foundry.describe.graphs import Graphs, matching, near, title

    found: list[tuple[int, GraphRow]] = []
    known: list[GraphRow] = []
    for index, process in chosen(opened, request):
        rows = Graphs(process).rows()
        known += rows
        found += [(index, row) for row in matching(rows, request.graph)]
    exact = [pair for pair in found if title(pair[1]) == request.graph]
    found = exact or found
    if len(found) == 1:
        return found[0]
    if not found:
        close = near(known, request.graph)
        hint = f"near to it: {', '.join(f'`{name}`' for name in close)}" if close else "`--graphs` lists all"
        raise NotInArchiveError(f"there is no graph `{request.graph}` in `{request.archive}`", hint=hint)
    several = len({row["process"] for _, row in found}) > 1
    texts = [f"`{title(row)}`" + (f" of `{row['process']}`" if several else "") for _, row in found]
    more = f" and {len(texts) - MOST_CANDIDATES} more" if len(texts) > MOST_CANDIDATES else ""
    raise UsageError(
        f"`{request.graph}` is the key of {len(texts)} graphs: {', '.join(texts[:MOST_CANDIDATES])}{more}",
        hint="name one as set/key" + (", or its process with `--process ROLE`" if several else ""),
    )
