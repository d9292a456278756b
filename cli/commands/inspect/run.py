"""Reads an archive for one view, and prints it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from foundry.errors import NotInArchiveError

from ...existing import require
from ...render import print_json
from .request import Request

if TYPE_CHECKING:
    from foundry.archive.opened import Opened

    from ...context import Context

SCHEMA = 1
"""Version of the JSON documents; `cli/JSON.md` describes them."""


def run(request: Request, context: Context) -> None:
    """Print a view of an archive, or write the report."""
    from foundry import archive

    require(request.archive)
    with archive.open_archive(request.archive) as opened:
        require_process(opened, request)
        if request.html is not None:
            from . import page

            page.write(opened, request, context)
        elif request.drawing:
            from . import drawing

            drawing.draw(opened, request)
        else:
            view: Any = import_module(f".{request.view}_view", __package__)
            document = heading(opened, request) | view.document(opened, request)
            if request.json:
                print_json(document, indent=None if request.view == "graph" else 2)
            else:
                view.show(document)


def heading(opened: Opened, request: Request) -> dict[str, Any]:
    """Give the keys that every document begins with."""
    return {
        "schema": SCHEMA,
        "view": request.view,
        "archive": str(request.archive),
        "capture_id": opened.capture_id,
    }


def require_process(opened: Opened, request: Request) -> None:
    """Refuse a role that is not in the archive."""
    if request.process is None or request.process in opened.roles:
        return
    import difflib

    near = difflib.get_close_matches(request.process, opened.roles, 3, 0.3) or opened.roles[:3]
    raise NotInArchiveError(
        f"there is no process `{request.process}` in `{request.archive}`",
        hint=f"it has {', '.join(f'`{role}`' for role in near)}" if near else None,
    )
