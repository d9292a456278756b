"""The files of JIT caches in an archive, and those that a start reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...render import print_lines, print_table
from .request import Request

if TYPE_CHECKING:
    from foundry.archive.opened import Opened

MOST_SHOWN = 10


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """List the files."""
    blobs = opened.head.blobs
    return {
        "files": [
            {
                "cache": file.cache,
                "path": file.path,
                "mode": f"{file.mode:04o}",
                "size": blobs[file.blob].size,
                "sha256": blobs[file.blob].sha256.hex(),
            }
            for file in opened.head.files
        ],
        "start_files": [
            {"path": file.path, "size": file.size, "read": file.wanted, "ranges": [list(part) for part in file.ranges]}
            for file in opened.start_files
        ],
    }


def show(found: dict[str, Any]) -> None:
    """Print the files of each cache, and the largest of those that a start reads."""
    from foundry.session.words import count, readable_size

    _show_caches(found["files"])
    files = found["start_files"]
    if not files:
        return
    size = readable_size(sum(file["read"] for file in files))
    print_lines("", f"a start reads {count(len(files), 'file')}, {size}; the order of reading is kept", "")
    largest = sorted(files, key=lambda file: -file["read"])[:MOST_SHOWN]
    print_table(
        [("read", "right"), ("of", "right"), ("path", "left")],
        [(readable_size(file["read"]), readable_size(file["size"]), file["path"]) for file in largest],
    )
    if len(files) > len(largest):
        print_lines("", f"and {len(files) - len(largest)} smaller ones; `--json` lists all")


def _show_caches(files: list[dict[str, Any]]) -> None:
    from foundry.session.words import count, readable_size

    if not files:
        print_lines("no files of JIT caches")
        return
    print_lines(f"{count(len(files), 'file')}, {readable_size(sum(file['size'] for file in files))}", "")
    sizes: dict[str, list[int]] = {}
    for file in sorted(files, key=lambda file: file["cache"]):
        sizes.setdefault(file["cache"], []).append(file["size"])
    if len(sizes) > 1:
        print_table(
            [("cache", "left"), ("files", "right"), ("size", "right")],
            [(cache, str(len(found)), readable_size(sum(found))) for cache, found in sizes.items()],
        )
        print_lines("")
    print_table(
        [("cache", "left"), ("size", "right"), ("mode", "left"), ("SHA-256", "left"), ("path", "left")],
        [
            (file["cache"], readable_size(file["size"]), file["mode"], file["sha256"][:12], file["path"])
            for file in sorted(files, key=lambda file: (file["cache"], file["path"]))
        ],
    )
