"""What a command line asks `inspect` for, once it is known to make sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foundry.errors import UsageError


@dataclass(frozen=True)
class NodePlace:
    """A node: from a body of the graph on a way through child graphs, its index there."""

    text: str
    body: int
    way: tuple[int, ...]
    index: int


@dataclass(frozen=True)
class Request:
    """One view of one archive. `drawing` is `dot`, `svg` or empty."""

    archive: Path
    view: str
    graph: str
    node: NodePlace | None
    process: str | None
    drawing: str
    restore_report: Path | None
    html: Path | None
    force: bool
    json: bool


def requested(
    archive: Path,
    views: Sequence[str],
    *,
    graph: str | None,
    node: str | None,
    process: str | None,
    drawings: Sequence[str],
    restore_report: Path | None,
    html: Path | None,
    force: bool,
    json: bool,
) -> Request:
    """Check which options stand together; UsageError if they do not."""
    if len(views) > 1:
        raise UsageError(f"{_options(views)} each ask for something else", hint="ask for one of them at a time")
    view = views[0] if views else "summary"
    outputs = [*drawings, *(["json"] if json else []), *(["node"] if node is not None and drawings else [])]
    for names, owners in ((drawings, ("graph",)), (["node"] if node is not None else [], ("graph",))):
        _belong(names, view, owners)
    _belong(["restore-report"] if restore_report else [], view, ("timeline", "html"))
    _belong(["force"] if force else [], view, ("html",))
    if drawings and len(outputs) > 1:
        raise UsageError(f"{_options(outputs)} do not go together", hint="ask for one of them at a time")
    if view == "html" and json:
        raise UsageError("`--html` and `--json` do not go together", hint="ask for one of them at a time")
    return Request(
        archive=archive,
        view=view,
        graph=graph or "",
        node=None if node is None else _node(node),
        process=process,
        drawing=drawings[0] if drawings else "",
        restore_report=restore_report,
        html=html,
        force=force,
        json=json,
    )


def _belong(names: Sequence[str], view: str, owners: Sequence[str]) -> None:
    if names and view not in owners:
        wanted = " or ".join(f"`--{owner}`" for owner in owners)
        raise UsageError(
            f"{_options(names)} says nothing without {wanted}", hint="`foundry inspect --help` shows what there is"
        )


def _options(names: Sequence[str]) -> str:
    return ", ".join(f"`--{name}`" for name in names)


def _node(text: str) -> NodePlace:
    body, slash, rest = text.rpartition("/")
    numbers = [part.strip() for part in rest.split(">")] + ([body] if slash else [])
    good = not (slash and len(numbers) > 2)
    if not good or not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers):
        raise UsageError(
            f"`{text}` is not a node",
            hint="`--node 12` is node 12 of the graph, `2/12` that of its child graph 2, `5>12` that of node 5",
        )
    *way, index = (int(part) for part in rest.split(">"))
    return NodePlace(text, int(body or 0), tuple(way), index)
