"""What a command finds around it: Python packages and library files, compared with those of a capture.

Read off the file system before the command starts, so it must be quick: what an archive's graphs came from, and where
that was found, is noted beside the restore images.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import env
from foundry.compat import compare, packages
from foundry.compat.compare import Library
from foundry.compat.items import Item
from foundry.errors import FoundryError
from foundry.launch import executable as executables

if TYPE_CHECKING:
    from foundry.compat.library_files import LibraryFiles
    from foundry.model import Capture
    from foundry.session.thin import Libraries

NOTED = "libraries.json"
"""Name of the note in a folder of images."""


class Surroundings:
    """What a command finds around it."""

    def __init__(self, found: executables.Executable, environment: Mapping[str, str]) -> None:
        self._found = found
        self._environment = environment

    @cached_property
    def _programs(self) -> list[Path]:
        try:
            return executables.chain(self._found, self._environment)
        except FoundryError:
            return [Path(self._found.path)]

    @cached_property
    def _folders(self) -> list[Path]:
        return [folder for path in self._programs for folder in packages.import_folders(path, self._environment)]

    @cached_property
    def _files(self) -> LibraryFiles:
        from foundry.compat.library_files import LibraryFiles

        return LibraryFiles(self._folders, self._environment, self._programs)

    @property
    def trims(self) -> bool:
        """Whether graphs are to take their kernels from images that hold no others."""
        return self._environment.get(env.TRIM) == "1"

    def packages(self) -> dict[str, str]:
        """Versions of the packages that the command would import; empty if it is no Python."""
        return packages.versions(self._folders)

    def thin(self) -> Libraries:
        """Read what a thin archive left in library files."""
        from foundry.session.thin import Libraries

        return Libraries(self._found, self._environment)

    def note(self, capture: Capture, folder: Path) -> None:
        """Write down for later starts which libraries the graphs came from, and where they are here."""
        noted = []
        for library in sorted(origins(capture)):
            path = self._files.find(library.name, library.build_id)
            noted.append({"name": library.name, "build_id": library.build_id, "path": str(path) if path else None})
        (folder / NOTED).write_text(json.dumps(noted), encoding="utf-8")

    def compared(self, folder: Path) -> list[Item]:
        """Compare the libraries that were noted in a folder of images."""
        noted = {}
        for entry in json.loads((folder / NOTED).read_text(encoding="utf-8")):
            noted[Library(entry["name"], entry["build_id"])] = entry["path"]

        def find(library: Library) -> str | None:
            path = noted[library]
            return self._files.build_id(library.name, library.build_id, Path(path) if path else None)

        return list(compare.libraries(noted, find, needed=False))


def origins(capture: Capture) -> set[Library]:
    """List the libraries that the images of a capture's graphs came from."""
    return {library for process in capture.processes for library in compare.origins(process.images)}
