"""The capture section: what an archive says of the whole, and which blobs there are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foundry.archive import layout
from foundry.archive.text import ContentError, Fields, widened

if TYPE_CHECKING:
    from foundry.findings import Finding
    from foundry.model import Capture, File, LibraryPlace

_MOST_PROCESSES = 4096


@dataclass(frozen=True, slots=True)
class BlobEntry:
    """A blob in the list. With a `library` its bytes are not in the archive but there."""

    size: int
    sha256: bytes
    library: LibraryPlace | None


@dataclass(frozen=True, slots=True)
class Head:
    """All of a capture but its processes and the bytes of its blobs."""

    processes: int
    context: dict[str, str]
    packages: dict[str, str]
    files: tuple[File, ...]
    findings: tuple[Finding, ...]
    blobs: tuple[BlobEntry, ...]

    @property
    def thin(self) -> bool:
        """Whether some of its blobs are not in the archive."""
        return any(entry.library for entry in self.blobs)


def head_of(capture: Capture) -> Head:
    """Make the head of a capture."""
    return Head(
        processes=len(capture.processes),
        context=capture.context,
        packages=capture.packages,
        files=capture.files,
        findings=capture.findings,
        blobs=tuple(
            BlobEntry(len(blob), hashlib.sha256(blob).digest(), capture.outside.get(index))
            for index, blob in enumerate(capture.blobs)
        ),
    )


def encode_head(head: Head) -> dict[str, Any]:
    """Make the JSON object of a capture section."""
    return {
        "processes": head.processes,
        "context": head.context,
        "packages": head.packages,
        "blobs": [{"size": entry.size, "sha256": entry.sha256.hex()} | _outside(entry.library) for entry in head.blobs],
        "files": [
            {"cache": file.cache, "path": file.path, "mode": file.mode, "blob": file.blob} for file in head.files
        ],
        "findings": [
            {"code": item.code, "severity": int(item.severity), "text": item.text, "where": item.where}
            for item in head.findings
        ],
    }


def decode_head(fields: Fields) -> Head:
    """Read the JSON object of a capture section, and check all in it that needs no other section."""
    from foundry.model.file_checks import check_files, check_outside
    from foundry.model.unsound import UnsoundError

    head = Head(
        processes=fields.integer("processes", _MOST_PROCESSES),
        context=fields.texts("context"),
        packages=fields.texts("packages"),
        files=fields.objects("files", _file),
        findings=fields.objects("findings", _finding),
        blobs=fields.objects("blobs", _blob),
    )
    places = {index: entry.library for index, entry in enumerate(head.blobs) if entry.library}
    try:
        check_files(head.files, len(head.blobs))
        check_outside(places, [entry.size for entry in head.blobs])
    except UnsoundError as error:
        raise ContentError(str(error)) from None
    return head


def _outside(place: LibraryPlace | None) -> dict[str, Any]:
    if place is None:
        return {}
    return {
        "library": {
            "name": place.name,
            "build_id": place.build_id,
            "offset": widened(place.offset),
            "size": widened(place.size),
            "architecture": place.architecture,
        }
    }


def _blob(item: Fields) -> BlobEntry:
    library = _place(item.object("library")) if item.has("library") else None
    return BlobEntry(item.wide("size"), item.hexadecimal("sha256", 32), library)


def _place(item: Fields) -> LibraryPlace:
    from foundry.model.files import LibraryPlace

    return LibraryPlace(
        name=item.text("name"),
        build_id=item.text("build_id"),
        offset=item.wide("offset"),
        size=item.wide("size"),
        architecture=item.integer("architecture", layout.WHOLE),
    )


def _file(item: Fields) -> File:
    from foundry.model.files import File

    return File(item.text("cache"), item.text("path"), item.integer("mode", 0o777), item.integer("blob", layout.WHOLE))


def _finding(item: Fields) -> Finding:
    from foundry.findings import Finding, Severity

    severity = Severity(item.integer("severity", max(Severity)))
    return Finding(item.text("code"), severity, item.text("text"), item.text("where"))
