"""What the blobs of an archive are, told by who refers to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from foundry.model import NONE, Process

if TYPE_CHECKING:
    from foundry.archive.heads import Head

MOST_KINDS = 20
FROM_MEMORY = "Kernel images made at run time or unpacked"


class Holdings:
    """Collects, process by process, what each blob is. The first that refers to a blob says so."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._kinds: dict[int, str] = {}
        for file in head.files:
            self._kinds.setdefault(file.blob, f"Files of the cache `{file.cache}`")

    def take(self, process: Process) -> None:
        """Add what a process refers to."""
        for image in process.images:
            if image.loaded != NONE:
                self._kinds.setdefault(
                    image.loaded, f"Kernel images of {image.provenance}" if image.provenance else FROM_MEMORY
                )
            if image.linked and image.blob != NONE:
                self._kinds.setdefault(image.blob, "Linked code that is not loaded")
        for contents in process.contents:
            self._kinds.setdefault(contents.blob, "Recorded memory contents")

    def bytes(self) -> Counter[str]:
        """Sum up the unpacked sizes by kind."""
        sums: Counter[str] = Counter()
        for index, entry in enumerate(self._head.blobs):
            sums[self._kinds.get(index, "Nothing in the archive refers to it")] += entry.size
        for kind in sorted(sums, key=lambda kind: (-sums[kind], kind))[MOST_KINDS:]:
            sums["All others"] += sums.pop(kind)
        return sums

    def outside(self) -> int:
        """Count the blobs whose bytes lie in library files."""
        return sum(entry.library is not None for entry in self._head.blobs)
