"""`foundry verify --host`: gathers what a restore would meet here, and has an archive compared with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import native
from foundry.compat import host, packages, probe
from foundry.compat.compare import captured_arguments
from foundry.compat.items import Item
from foundry.compat.library_files import LibraryFiles
from foundry.errors import FoundryError
from foundry.launch import environment as launch_environment
from foundry.launch import executable as executables
from foundry.store.secrets import masked

if TYPE_CHECKING:
    from foundry.archive import Opened


def examine(
    archive: Opened,
    *,
    command: Sequence[str] | None,
    environment: Mapping[str, str],
    simulated: bool,
    version: str,
    allowed: Collection[str] = (),
) -> list[Item]:
    """Compare an archive with this machine, worst first. `command` None: packages are those of the captured command.

    Raises ArchiveError, and FoundryError for a command that is not there.
    """
    words = captured_arguments(archive.head.context) if command is None else command
    interpreters = programs(words, environment, strict=command is not None)
    folders = [folder for program in interpreters for folder in packages.import_folders(program, environment)]
    finder = LibraryFiles(folders, environment, interpreters)
    here = host.Here(
        machine=ask(environment, simulated=simulated),
        simulated=simulated,
        arguments=masked(command) if command is not None else None,
        environment=environment,
        packages=packages.versions(folders),
        version=version,
        hook_fault=_hook_fault(),
        library=lambda library: finder.build_id(library.name, library.build_id),
        allowed=allowed,
    )
    return host.examine(archive, here)


def ask(environment: Mapping[str, str], *, simulated: bool, seconds: float = probe.SECONDS) -> probe.Machine:
    """Ask the driver that a command started here would load."""
    try:
        return probe.ask(launch_environment.plain(environment, simulated=simulated), seconds=seconds)
    except FoundryError as error:
        return probe.Machine(fault=str(error))


def programs(command: Sequence[str], environment: Mapping[str, str], *, strict: bool) -> list[Path]:
    """List the file of a command and the interpreters behind it. Without `strict`, what is not there is left out."""
    try:
        found = executables.find(command, environment) if command else None
        return executables.chain(found, environment) if found else []
    except FoundryError:
        if strict:
            raise
        return []


def _hook_fault() -> str:
    try:
        native.Hook()
    except FoundryError as error:
        return re.sub(r"\s+", " ", str(error))
    return ""
