"""Thin archives: kernel images that lie in library files of this machine are left out, and found again on a restore."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from foundry.binary.fatbin import FatbinError, unpack
from foundry.compat.codes import LIBRARY_NEEDED
from foundry.compat.library_files import LibraryFiles
from foundry.compat.packages import import_folders
from foundry.errors import FoundryError, MismatchError
from foundry.launch import executable as executables
from foundry.model import NONE, Capture, Image, LibraryPlace, Process


class Libraries:
    """The library files that a command would load here."""

    def __init__(self, found: executables.Executable, environment: Mapping[str, str]) -> None:
        try:
            programs = executables.chain(found, environment)
        except FoundryError:
            programs = [Path(found.path)]
        folders = [folder for program in programs for folder in import_folders(program, environment)]
        self._files = LibraryFiles(folders, environment, programs)
        self._paths: dict[tuple[str, str], Path | None] = {}

    def read(self, place: LibraryPlace) -> bytes | None:
        """Read the bytes of a blob from its library; None if they are not there."""
        path = self._path(place)
        try:
            data = _part(path, place.offset, place.size) if path else None
            if data is None or not place.architecture:
                return data
            return unpack(data, place.architecture)
        except (OSError, FatbinError):
            return None

    def require(self, place: LibraryPlace) -> bytes:
        """Read them, or raise MismatchError with what is missing."""
        named = f"`{place.name}` with the build id {place.build_id}"
        if self._path(place) is None:
            other = self._files.build_id(place.name, place.build_id)
            here = "; there is one with no build id" if other == "" else f"; there is one with {other}" if other else ""
            raise _missing(f"the archive is thin and needs the library {named}, which is not found here{here}")
        found = self.read(place)
        if found is None:
            raise _missing(f"the library {named} has no kernel image at byte {place.offset} that can be read")
        return found

    def _path(self, place: LibraryPlace) -> Path | None:
        name = (place.name, place.build_id)
        if name not in self._paths:
            self._paths[name] = self._files.find(*name)
        return self._paths[name]


def leave_out(capture: Capture, libraries: Libraries) -> Capture:
    """Mark the blobs that are read again from a library file here, and are equal, as lying there."""
    outside: dict[int, LibraryPlace] = {}
    tried: set[tuple[int, LibraryPlace]] = set()
    for index, place in _candidates(capture):
        if index not in outside and (index, place) not in tried:
            tried.add((index, place))
            if libraries.read(place) == capture.blobs[index]:
                outside[index] = place
    return replace(capture, outside=outside)


def note(capture: Capture) -> str:
    """Say in a line what an archive of this capture leaves out; empty if nothing."""
    from foundry.session.words import count, readable_size

    if not capture.outside:
        return ""
    size = sum(len(capture.blobs[index]) for index in capture.outside)
    names = Counter(place.name for place in capture.outside.values())
    return (
        f"thin: {count(len(capture.outside), 'kernel image')} of {readable_size(size)} left out, which must be in "
        f"{', '.join(f'`{name}`' for name in sorted(names))} on a restore"
    )


def _candidates(capture: Capture) -> Iterator[tuple[int, LibraryPlace]]:
    for process in capture.processes:
        architecture = _architecture(process)
        for image in process.images:
            blob = image.loaded
            if blob == NONE or not image.provenance or not image.build_id or (image.unpacked and not architecture):
                continue
            yield blob, _place(image, architecture if image.unpacked else 0)


def _place(image: Image, architecture: int) -> LibraryPlace:
    return LibraryPlace(image.provenance, image.build_id, image.offset, image.size, architecture)


def _architecture(process: Process) -> int:
    found = {device.compute_major * 10 + device.compute_minor for device in process.devices}
    return found.pop() if len(found) == 1 else 0


def _part(path: Path, offset: int, size: int) -> bytes | None:
    with path.open("rb") as file:
        if offset + size > os.fstat(file.fileno()).st_size:
            return None
        file.seek(offset)
        data = file.read(size)
    return data if len(data) == size else None


def _missing(text: str) -> MismatchError:
    return MismatchError(text, code=LIBRARY_NEEDED, hint="capture again, without `--thin` to need no library files")
