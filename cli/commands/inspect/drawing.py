"""Drawings of one graph, on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .request import Request
from .selection import document_of

if TYPE_CHECKING:
    from foundry.archive.opened import Opened


def draw(opened: Opened, request: Request) -> None:
    """Print a graph as SVG or for Graphviz, in UTF-8."""
    from foundry.describe import dot, svg

    graph = document_of(opened, request, parameters=False)
    text = svg.draw(graph) if request.drawing == "svg" else dot.draw(graph)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
