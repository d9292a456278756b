"""All graphs of an archive in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...render import print_lines, print_table
from .processes import chosen
from .request import Request
from .words import named_reason

if TYPE_CHECKING:
    from foundry.archive.opened import Opened


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """List the graphs."""
    from foundry.describe.graphs import Graphs

    return {"graphs": [row for _, process in chosen(opened, request) for row in Graphs(process).rows()]}


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    from foundry.describe.graphs import title
    from foundry.session.words import readable_size

    rows = found["graphs"]
    if not rows:
        print_lines("no graphs")
        return
    roles = list(dict.fromkeys(row["process"] for row in rows))
    for role in roles:
        mine = [row for row in rows if row["process"] == role]
        if role != roles[0]:
            print_lines("")
        restorable = sum(row["restorable"] for row in mine)
        print_lines(f"process {role}: {len(mine)} graphs, {restorable} restorable")
        print_table(
            [
                ("graph", "left"),
                ("nodes", "right"),
                ("edges", "right"),
                ("group", "right"),
                ("refers to", "right"),
                ("restorable", "left"),
            ],
            [
                (
                    title(row),
                    f"{row['nodes']:,}",
                    f"{row['edges']:,}",
                    str(row["group"]),
                    readable_size(row["referenced_bytes"]),
                    _state(row),
                )
                for row in mine
            ],
        )


def _state(row: dict[str, Any]) -> str:
    if not row["restorable"]:
        return f"no, {row['reason_code']}: {named_reason(row['reason'])}"
    return "yes" if row["restored"] else "yes, but it has no name to ask for it by"
