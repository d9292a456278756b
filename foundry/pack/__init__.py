"""From a spool to a capture: a pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foundry.findings import Finding
    from foundry.model import Capture, Range
    from foundry.pack.libraries import Origin

__all__ = ["add_files", "pack"]


def pack(
    spool_folder: Path,
    *,
    context: Mapping[str, str] | None = None,
    all_kernels: bool = False,
    origin: Origin | None = None,
    ranges: dict[str, tuple[Range, ...]] | None = None,
    blobs: Callable[[Sequence[bytes]], None] | None = None,
) -> tuple[Capture, list[Finding]]:
    """Turn the spool folder of a session (one folder for each process) into a capture and what there is to tell of it.

    `context` is what the session knows: argv, versions, allow-listed environment. `all_kernels` keeps every image that
    the program loaded instead of those that its graphs use. `origin` tells of a library file's path which distribution
    it belongs to, and its version; both may be empty. `ranges` is filled with memory that the hook did not place, by
    role, with all its addresses: a capture keeps none of the host's. `blobs` is called with those that the capture
    begins with as soon as they are known, and again with more.

    Raises SpoolError if there is no spool, or one of another build.
    """
    from foundry.pack.libraries import of_nobody
    from foundry.pack.session import pack_session

    return pack_session(
        spool_folder, dict(context or {}), all_kernels, origin or of_nobody, {} if ranges is None else ranges, blobs
    )


def add_files(capture: Capture, files: Iterable[tuple[str, str, int, bytes]]) -> Capture:
    """Add files of JIT caches to a capture: cache, path below the cache's folder, mode, bytes; equal bytes once."""
    from foundry.pack.files import with_files

    return with_files(capture, files)
