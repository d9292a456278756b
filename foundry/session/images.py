"""From an archive to the folder of restore images that the hook maps, made once and then reused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import native
from foundry.errors import ArchiveError, DiskFullError, MismatchError
from foundry.session import early, surroundings
from foundry.session.hurry import hurried
from foundry.session.listener import Listener
from foundry.session.surroundings import Noted, Surroundings
from foundry.store import images
from foundry.store.location import Location

if TYPE_CHECKING:
    from foundry.archive import Find, Summary


@dataclass(frozen=True)
class Images:
    """The restore images of an archive in their folder, or what is known of those that are still to be made there.

    `libraries`: where their kernels came from; `early`: how a command may begin; `make`: makes them, None where they
    are there.
    """

    folder: Path
    roles: Sequence[str]
    libraries: Noted
    early: str
    make: Callable[[], None] | None = None

    @property
    def first_places(self) -> list[Path]:
        """Where each will be while others are still being made."""
        return [images.unfinished(self.folder) / f"{role}{images.SUFFIX}" for role in self.roles]


def find(archive_path: Path, summary: Summary, place: Location, around: Surroundings) -> Images:
    """Look for the images of an archive."""
    roles = [process.role for process in summary.processes]
    if not roles:
        raise MismatchError(f"`{archive_path}` holds no process", code="mismatch-no-graphs", hint="capture again")
    candidates = images.candidates(place, summary.capture_id, native.ABI, summary.proof_id, trimmed=around.trims)
    hook = native.Hook()

    def ready(folder: Path) -> bool:
        return (folder / surroundings.NOTED).is_file() and images.ready(folder, roles, hook.image_fault)

    for folder in candidates:
        if ready(folder):
            return Images(folder, roles, surroundings.noted(folder), early.noted(folder))
    folder = candidates[-1]
    from foundry import archive

    with archive.open_archive(archive_path) as opened:
        processes = [opened.outline(index) for index in range(len(roles))]
    libraries, begins = around.found(processes), early.of_processes(processes)

    def note(temporary: Path) -> None:
        surroundings.note(libraries, temporary)
        early.note(begins, temporary)

    def make() -> None:
        outside = around.thin().require if summary.thin else None
        _make(archive_path, folder, summary.capture_id, outside, around.trims, note, lambda: ready(folder))

    return Images(folder, roles, libraries, begins, make)


def folder_for(archive_path: Path, summary: Summary, place: Location, listener: Listener, around: Surroundings) -> Path:
    """Give the folder of the images of an archive, from the cache or made now."""
    found = find(archive_path, summary, place, around)
    make_now(found, listener)
    return found.folder


def make_now(found: Images, listener: Listener) -> None:
    """Make what is not there, before anything else is done."""
    if found.make:
        with listener.step("unpacking the archive for this and later starts"):
            found.make()


def _make(
    archive_path: Path,
    folder: Path,
    capture_id: str,
    find: Find | None,
    trim: bool,
    note: Callable[[Path], None],
    made: Callable[[], bool],
) -> None:
    def build(temporary: Path) -> None:
        from foundry import archive, image

        capture = archive.read(archive_path, find)
        for process in capture.processes:
            path = temporary / f"{process.role}{images.SUFFIX}"
            image.build(capture, process.role, path, capture_id, trim=trim)
        note(temporary)

    try:
        with hurried():
            images.make(folder, build, made)
    except DiskFullError:
        raise
    except OSError as error:
        raise ArchiveError(
            f"cannot write the restore images of `{archive_path}` to `{folder}`: {error.strerror or error}",
            code="image-not-written",
            hint="set `XDG_CACHE_HOME` to a folder with room",
        ) from error
