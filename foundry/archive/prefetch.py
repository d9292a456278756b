"""The prefetch section: the files that a start reads. A hint, and no part of what a capture is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from foundry.archive.text import ContentError, Fields, integer, text

if TYPE_CHECKING:
    from foundry.model import StartFile


def encode_prefetch(files: Iterable[StartFile]) -> dict[str, Any]:
    """Make the JSON object of the files that a start reads."""
    folders: dict[str, int] = {}
    found = []
    for file in files:
        folder, _, name = file.path.rpartition("/")
        found.append(
            {
                "folder": folders.setdefault(folder, len(folders)),
                "name": name,
                "size": file.size,
                "ranges": [number for pair in file.ranges for number in pair],
            }
        )
    return {"folders": list(folders), "files": found}


def decode_prefetch(fields: Fields) -> tuple[StartFile, ...]:
    """Read them, and check all that is said of them."""
    from foundry.model.file_checks import check_start_files
    from foundry.model.files import StartFile
    from foundry.model.unsound import UnsoundError

    folders = fields.items("folders", text)

    def read(item: Fields) -> StartFile:
        folder, name = item.integer("folder"), item.text("name")
        if folder >= len(folders) or "/" in name:
            raise ContentError(f"there is no folder {folder}, or {name!r} has one of its own")
        ranges = item.items("ranges", integer)
        if len(ranges) % 2:
            raise ContentError(f"a range of {name!r} has no length")
        pairs = tuple(zip(ranges[::2], ranges[1::2], strict=True))
        return StartFile(f"{folders[folder]}/{name}", item.integer("size"), pairs)

    files = fields.objects("files", read)
    try:
        check_start_files(files)
    except UnsoundError as error:
        raise ContentError(str(error)) from None
    return files
