"""What an adapter is. Nothing here, nor in the adapters' own top level, imports an engine or torch."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

log = logging.getLogger("foundry")


@dataclass(frozen=True)
class Seam:
    """A function of the engine that an adapter replaces, or whose behaviour it relies on.

    `digest` is that of its source in the release that the adapter was written against (see `seams.py`). `replaced`
    tells whether it is held against `parameters` in the running process before anything is patched.
    """

    module: str
    name: str
    parameters: tuple[str, ...]
    digest: str
    replaced: bool = True


class Adapter(Protocol):
    """Knows one engine. It changes nothing where the hook is not armed, and decides that at each call, not before."""

    @property
    def name(self) -> str:
        """What lines for people and the names of sets begin with; the package whose version is asked for."""

    @property
    def versions(self) -> tuple[str, ...]:
        """The public versions that it knows; empty if its seams alone decide."""

    @property
    def seams(self) -> tuple[Seam, ...]:
        """All that it relies on."""

    @property
    def fields(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """What it reads of the engine's configuration: names by module and class."""

    @property
    def patches(self) -> Mapping[str, Callable[[ModuleType], None]]:
        """What to do with a module of the engine once it is imported, by its name. More than once does no harm."""


disabled: dict[str, str] = {}
"""Adapters that could not be put in place whole, and why: what is in place of them leaves everything alone."""


def tell(adapter: str, text: str) -> None:
    """Say one line about an engine."""
    log.warning("foundry: %s: %s", adapter, text)


def version_of(package: str) -> str:
    """Tell the version of a package that is being imported, without looking on disk if it says so itself."""
    for name in (f"{package}.version", package):
        found = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(found, str):
            return found
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
