"""Which Python distributions the library files of a command belong to, by what is installed beside them."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

from foundry.compat.packages import NAMES

SUFFIX = ".dist-info"
PREFIXES = ("nvidia-", "flashinfer")
"""Distributions with names that begin so are told as well as those that `foundry.compat` compares."""


class Distributions:
    """Answers for the files that it is asked of, and knows the folders of installed packages that they lie in."""

    def __init__(self) -> None:
        self._installed: dict[Path, dict[str, Path]] = {}
        self._owners: dict[Path, dict[str, tuple[str, str]]] = {}

    def origin(self, path: str) -> tuple[str, str]:
        """Name the distribution that the file belongs to, and its version; both are empty where none claims it."""
        if not path.startswith("/"):
            return "", ""
        file = Path(os.path.normpath(path))
        for folder in file.parents:
            if self._distributions(folder):
                return self._owned(folder).get(str(file), ("", ""))
        return "", ""

    def versions(self) -> dict[str, str]:
        """Find the distributions that decide which kernels run, in the folders that the files lay in."""
        found: dict[str, str] = {}
        for folder in self._owners:
            for entry in self._distributions(folder):
                name, version = _name_and_version(entry)
                if name in NAMES or name.startswith(PREFIXES):
                    found.setdefault(name, version)
        return dict(sorted(found.items()))

    def _distributions(self, folder: Path) -> dict[str, Path]:
        """List the records of a folder's distributions by the name of their own folder."""
        known = self._installed.get(folder)
        if known is None:
            try:
                entries = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(SUFFIX))
            except OSError:
                entries = []
            known = self._installed[folder] = {entry: folder / entry / "RECORD" for entry in entries}
        return known

    def _owned(self, folder: Path) -> dict[str, tuple[str, str]]:
        known = self._owners.get(folder)
        if known is None:
            known = self._owners[folder] = {}
            for entry, record in self._distributions(folder).items():
                for path in _libraries_of(record):
                    known.setdefault(os.path.normpath(folder / path), _name_and_version(entry))
        return known


def _name_and_version(entry: str) -> tuple[str, str]:
    name, _, version = entry.removesuffix(SUFFIX).partition("-")
    return re.sub(r"[-_.]+", "-", name).lower(), version


def _libraries_of(record: Path) -> list[str]:
    try:
        text = record.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    lines = [line for line in text.splitlines() if ".so" in line]
    return [fields[0] for fields in csv.reader(lines) if fields]
