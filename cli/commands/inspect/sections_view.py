"""The table of contents of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...render import print_table
from .request import Request

if TYPE_CHECKING:
    from foundry.archive.opened import Opened


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """List the sections in the order of the file."""
    from foundry.archive import layout

    chosen = None if request.process is None else opened.roles.index(request.process)
    return {
        "sections": [
            {
                "kind": section.name,
                "process": None if section.process == layout.WHOLE else section.process,
                "offset": section.offset,
                "stored": section.stored,
                "raw": section.raw,
                "critical": section.critical,
                "digest": section.digest.hex(),
            }
            for section in opened.sections
            if chosen is None or section.process == chosen
        ]
    }


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print_table(
        [
            ("section", "left"),
            ("process", "right"),
            ("offset", "right"),
            ("stored", "right"),
            ("unpacked", "right"),
            ("critical", "left"),
            ("SHA-256", "left"),
        ],
        [
            (
                section["kind"],
                "-" if section["process"] is None else str(section["process"]),
                f"{section['offset']:,}",
                f"{section['stored']:,}",
                f"{section['raw']:,}",
                "yes" if section["critical"] else "no",
                section["digest"][:12],
            )
            for section in found["sections"]
        ],
    )
