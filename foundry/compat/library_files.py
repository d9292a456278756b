"""Finds library files by base name, and reads their build ids: the names by which kernels' origins are known."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

LOADER_SETTINGS = Path("/etc/ld.so.conf.d")
LOADER_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib",
    "/usr/local/lib",
)
_IN_PACKAGES = ("nvidia/*/lib", "torch/lib", "*.libs", "*/lib", "*")
"""Where Python packages keep libraries, below a folder of packages."""
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_PT_NOTE = 4
_BUILD_ID = 3
_MOST_NOTES = 1 << 20


class LibraryFiles:
    """The library files of this machine that a program would find, each folder looked at once, when it is needed."""

    def __init__(self, packages: Iterable[Path], environment: Mapping[str, str], programs: Iterable[Path] = ()) -> None:
        """Look in folders of Python packages, and at and beside the programs, too."""
        self._packages = list(packages)
        named = [Path(folder) for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
        beside = [folder for path in programs for folder in (path.parent, path.resolve().parent)]
        self._plain = [*named, *beside, *_configured(), *map(Path, LOADER_FOLDERS)]
        self._folders: list[Path] | None = None

    def build_id(self, name: str, wanted: str, hint: Path | None = None) -> str | None:
        """Tell the build id of a library of that name, `wanted` if any has it; None if there is no such file.

        `hint`: where it was once. It is looked at first, if it is one of the places that a program would look at.
        """
        found: str | None = None
        if not name or "/" in name:
            return None
        if hint and hint.name == name and self._within(hint.parent) and build_id(hint) == wanted:
            return wanted
        for path in self._files(name):
            this = build_id(path)
            if this == wanted:
                return this
            found = this if found is None else found
        return found

    def find(self, name: str, wanted: str) -> Path | None:
        """Find the library of that name with that build id."""
        if not name or "/" in name:
            return None
        return next((path for path in self._files(name) if build_id(path) == wanted), None)

    def _within(self, folder: Path) -> bool:
        return folder in self._plain or any(packages in folder.parents for packages in self._packages)

    def _files(self, name: str) -> Iterator[Path]:
        if self._folders is None:
            inside = [found for folder in self._packages for pattern in _IN_PACKAGES for found in folder.glob(pattern)]
            self._folders = list(dict.fromkeys([*inside, *self._plain]))
        for folder in self._folders:
            path = folder / name
            if path.is_file():
                yield path


def _configured() -> list[Path]:
    """List the folders that the loader was told of beyond its own."""
    found = []
    for file in sorted(LOADER_SETTINGS.glob("*.conf")):
        with suppress(OSError):
            lines = file.read_text(errors="replace").splitlines()
            found += [Path(line.strip()) for line in lines if line.startswith("/")]
    return found


def build_id(path: Path) -> str:
    """Read the build id of an ELF file; empty if it has none or is none."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or not head.startswith(b"\x7fELF\x02\x01"):
                return ""
            fields = _HEADER.unpack(head)
            offset, size, count = fields[5], fields[9], fields[10]
            if size != _SEGMENT.size:
                return ""
            file.seek(offset)
            table = file.read(size * count)
            for at in range(0, len(table) - size + 1, size):
                segment = _SEGMENT.unpack_from(table, at)
                if segment[0] == _PT_NOTE and segment[5] <= _MOST_NOTES:
                    file.seek(segment[2])
                    if found := _in_notes(file.read(segment[5])):
                        return found
    except (OSError, ValueError, OverflowError):
        return ""
    return ""


def _in_notes(data: bytes) -> str:
    at = 0
    while at + _NOTE.size <= len(data):
        name_size, size, kind = _NOTE.unpack_from(data, at)
        name = at + _NOTE.size
        start = name + (name_size + 3 & ~3)
        if kind == _BUILD_ID and data[name : name + name_size] == b"GNU\0":
            return data[start : start + size].hex()
        at = start + (size + 3 & ~3)
    return ""
