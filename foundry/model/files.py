"""Files: those of JIT caches, which a capture holds, and libraries, which it refers to. Needs no numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Library:
    """A library file that the process had loaded, by its base name.

    `build_id` is hexadecimal text; `package` and `version` are the Python distribution that the file belongs to. Each
    of the three may be empty. A process lists each once, in ascending order.
    """

    name: str
    build_id: str
    package: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class LibraryPlace:
    """Where the bytes of a blob lie in a library file, which is known by its base name and build id.

    They are the `size` bytes at `offset`, or with an `architecture` (90 for compute capability 9.0) the cubin for that
    GPU out of the fatbin that these bytes are.
    """

    name: str
    build_id: str
    offset: int
    size: int
    architecture: int


@dataclass(frozen=True, slots=True)
class File:
    """A file of a JIT cache. `path` is relative, with forward slashes, and stays below the cache's folder."""

    cache: str
    path: str
    mode: int
    blob: int


@dataclass(frozen=True, slots=True)
class StartFile:
    """A file that the command had read when it was ready; `~` at the begin of `path` is the user's home folder.

    `ranges` are the bytes of it that were read, each as offset and length, ascending; empty: all of its `size`.
    """

    path: str
    size: int
    ranges: tuple[tuple[int, int], ...] = ()

    @property
    def wanted(self) -> int:
        """Bytes that were read."""
        return sum(length for _, length in self.ranges) if self.ranges else self.size
