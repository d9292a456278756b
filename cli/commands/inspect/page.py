"""The report as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .request import Request
from .restored import read_report

if TYPE_CHECKING:
    from foundry.archive.opened import Opened

    from ...context import Context


def write(opened: Opened, request: Request, context: Context) -> None:
    """Write the report under its name when it is whole."""
    from foundry.archive.target import put
    from foundry.page import render

    assert request.html is not None
    report = read_report(request.restore_report)
    text = render(opened, restore_report=report)
    put(request.html, [text.encode("utf-8", "backslashreplace")], force=request.force)
    context.note(f"wrote `{request.html}`")
