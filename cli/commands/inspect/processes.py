"""The processes of an archive that a request is about, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .request import Request

if TYPE_CHECKING:
    from foundry.archive.opened import Opened
    from foundry.model import Process


def chosen(opened: Opened, request: Request) -> Iterator[tuple[int, Process]]:
    """Decode the processes that are asked for, each with its index."""
    if request.process is not None:
        index = opened.roles.index(request.process)
        yield index, opened.process(index)
        return
    yield from enumerate(opened.processes())
