"""Triton's kernels in another cache's folder, for Triton's own.

Inductor and engines have Triton write below a folder of theirs in a start that compiles, but not in one that finds its
compiled model: there Triton looks in its own folder, and would compile every kernel that is not of that model again.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from foundry.caches.relocate import names_paths

if TYPE_CHECKING:
    from foundry.caches.collect import CacheFile

TRITON = "triton"


def twins(files: Sequence[CacheFile]) -> list[CacheFile]:
    """Give what Triton's own cache lacks of the kernels in the others, entry by entry, with the heads first."""
    roots = {(cache, _root(path)) for cache, path, _, _ in files if cache != TRITON and names_paths(path)}
    taken = {posixpath.dirname(path) for cache, path, _, _ in files if cache == TRITON}
    chosen: dict[str, tuple[str, str]] = {}
    found = []
    for cache, path, mode, data in files:
        root = (cache, _root(path))
        entry = posixpath.basename(posixpath.dirname(path))
        if root not in roots or entry in taken or chosen.setdefault(entry, root) != root:
            continue
        found.append((TRITON, f"{entry}/{posixpath.basename(path)}", mode, data))
    return found


def _root(path: str) -> str:
    return posixpath.dirname(posixpath.dirname(path))
