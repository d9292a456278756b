"""What a command finds around it: Python packages and library files, compared with those of a capture.

Read off the file system before the command starts, so it must be quick: what an archive's graphs came from, and where
that was found, is noted beside the restore images.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import env
from foundry.compat import compare, gate, gpu, packages
from foundry.compat.compare import Library
from foundry.compat.items import Item
from foundry.errors import FoundryError
from foundry.launch import executable as executables
from foundry.store import secrets

if TYPE_CHECKING:
    from foundry.archive import Outline, Summary
    from foundry.compat.library_files import LibraryFiles
    from foundry.session.thin import Libraries

NOTED = "libraries.json"
"""Name of the note in a folder of images."""

Noted = Mapping[Library, "str | None"]
"""The libraries that graphs came from, and where they were found when an archive's images were made."""


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

    def differences(self, command: Sequence[str], summary: Summary, *, simulated: bool) -> list[Item]:
        """Compare what is known of the command and the machine before the start with the capture's."""
        start = gate.Start(
            arguments=secrets.masked(command),
            environment=self._environment,
            simulated=simulated,
            models=gpu.expected_models(self._environment, simulated=simulated),
            release=gpu.driver_version(),
            packages=self.packages() if summary.packages else {},
        )
        return gate.examine(summary, start)

    def thin(self) -> Libraries:
        """Read what a thin archive left in library files."""
        from foundry.session.thin import Libraries

        return Libraries(self._found, self._environment)

    def found(self, processes: Iterable[Outline]) -> Noted:
        """Find the libraries that the graphs of processes came from."""
        wanted = sorted({Library(*origin) for process in processes for origin in process.origins})
        paths = ((library, self._files.find(library.name, library.build_id)) for library in wanted)
        return {library: str(path) if path else None for library, path in paths}

    def compared(self, noted: Noted) -> list[Item]:
        """Compare libraries that were noted with what is here now."""

        def find(library: Library) -> str | None:
            path = noted[library]
            return self._files.build_id(library.name, library.build_id, Path(path) if path else None)

        return list(compare.libraries(noted, find, needed=False))


def note(noted: Noted, folder: Path) -> None:
    """Write it down for later starts."""
    entries = [{"name": one.name, "build_id": one.build_id, "path": path} for one, path in noted.items()]
    (folder / NOTED).write_text(json.dumps(entries), encoding="utf-8")


def noted(folder: Path) -> Noted:
    """Read what was written down."""
    entries = json.loads((folder / NOTED).read_text(encoding="utf-8"))
    return {Library(entry["name"], entry["build_id"]): entry["path"] for entry in entries}
