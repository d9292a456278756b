"""From an archive to the folder of restore images that the hook maps, made once and then reused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import native
from foundry.errors import ArchiveError, DiskFullError, MismatchError
from foundry.session import early
from foundry.session.hurry import hurried
from foundry.session.listener import Listener
from foundry.session.surroundings import NOTED, Surroundings
from foundry.store import images
from foundry.store.location import Location

if TYPE_CHECKING:
    from foundry.archive import Find, Summary


def folder_for(archive_path: Path, summary: Summary, place: Location, listener: Listener, around: Surroundings) -> Path:
    """Give the images of an archive, from the cache or made now, with a note of the libraries that they came from."""
    roles = [process.role for process in summary.processes]
    if not roles:
        raise MismatchError(f"`{archive_path}` holds no process", code="mismatch-no-graphs", hint="capture again")
    candidates = images.candidates(place, summary.capture_id, native.ABI, summary.proof_id, trimmed=around.trims)
    hook = native.Hook()

    def ready(folder: Path) -> bool:
        return (folder / NOTED).is_file() and images.ready(folder, roles, hook.image_fault)

    for folder in candidates:
        if ready(folder):
            return folder
    with listener.step("unpacking the archive for this and later starts"):
        find = around.thin().require if summary.thin else None
        _make(archive_path, candidates[-1], summary.capture_id, find, around, ready)
    return candidates[-1]


def _make(
    archive_path: Path,
    folder: Path,
    capture_id: str,
    find: Find | None,
    around: Surroundings,
    ready: Callable[[Path], bool],
) -> None:
    def build(temporary: Path) -> None:
        from foundry import archive, image

        capture = archive.read(archive_path, find)
        for process in capture.processes:
            path = temporary / f"{process.role}{images.SUFFIX}"
            image.build(capture, process.role, path, capture_id, trim=around.trims)
        around.note(capture, temporary)
        early.note(capture, temporary)

    try:
        with hurried():
            images.make(folder, build, lambda: ready(folder))
    except DiskFullError:
        raise
    except OSError as error:
        raise ArchiveError(
            f"cannot write the restore images of `{archive_path}` to `{folder}`: {error.strerror or error}",
            code="image-not-written",
            hint="set `XDG_CACHE_HOME` to a folder with room",
        ) from error
