"""The kernels of an archive and the images that they are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...render import print_lines, print_table, width
from .processes import chosen
from .request import Request

if TYPE_CHECKING:
    from foundry.archive.opened import Opened

SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """List kernels and images."""
    from foundry.describe.kernels import images, kernels

    sizes = [entry.size for entry in opened.head.blobs]
    found: dict[str, Any] = {"kernels": [], "images": []}
    for _, process in chosen(opened, request):
        found["kernels"] += kernels(process)
        found["images"] += images(process, sizes)
    return found


def show(found: dict[str, Any]) -> None:
    """Print both tables, what is used most first."""
    from foundry.describe.captions import shortened
    from foundry.session.words import count, readable_size

    kernels = sorted(found["kernels"], key=lambda row: -row["uses"])
    images = sorted(found["images"], key=lambda row: -(row["stored_bytes"] or 0))
    print_lines(f"{count(len(kernels), 'kernel')}, {count(len(images), 'image')}")
    if kernels:
        print_lines("")
        several = len({row["process"] for row in kernels}) > 1
        room = max(width() - 42 - (18 if several else 0), 24)
        print_table(
            [
                *([("process", "left")] if several else []),
                ("nodes", "right"),
                ("graphs", "right"),
                ("image", "right"),
                ("parameters", "right"),
                ("shared", "right"),
                ("kernel", "left"),
            ],
            [
                (
                    *([row["process"]] if several else []),
                    f"{row['uses']:,}",
                    str(row["graphs"]),
                    "-" if row["image"] is None else str(row["image"]),
                    f"{len(row['parameters'])}, {row['parameter_bytes']}",
                    next((str(item["value"]) for item in row["attributes"] if item["number"] == SHARED), "-"),
                    shortened(row["short"], room),
                )
                for row in kernels
            ],
        )
    if images:
        print_lines("")
        print_table(
            [
                ("image", "right"),
                ("size", "right"),
                ("kernels", "right"),
                ("given as", "left"),
                ("in graphs", "left"),
                ("from", "left"),
            ],
            [
                (
                    str(row["index"]),
                    "-" if row["stored_bytes"] is None else readable_size(row["stored_bytes"]),
                    str(row["kernels"]),
                    f"{row['format']}, {row['api']}",
                    "yes" if row["in_graphs"] else "no",
                    row["provenance"] or "memory",
                )
                for row in images
            ],
        )
