"""JIT caches in a session: what a capture keeps of them, and a restore puts in place. None of it stops a command."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from foundry.findings import CACHE_LEFT_OUT, Finding, Severity

if TYPE_CHECKING:
    from foundry.archive import Summary
    from foundry.caches.collect import CacheFile, Collector
    from foundry.caches.outcome import Placed
    from foundry.model import Capture
    from foundry.session.listener import Listener


def begin(environment: Mapping[str, str], listener: Listener) -> Collector | None:
    """Look at the caches of a command that is about to start. None, with a warning, if that cannot be done."""
    from foundry.caches.collect import Collector

    try:
        return Collector(environment, _working_folder())
    except (OSError, RuntimeError) as error:
        listener.warn(f"JIT caches are not kept: {error}")
        return None


def with_files(
    capture: Capture, findings: list[Finding], collector: Collector, earlier: Capture | None = None
) -> tuple[Capture, list[Finding]]:
    """Add what the command needed of its caches up to now, and what there is to tell of it.

    `earlier`: the capture that this one is added to, whose files stay.
    """
    from foundry.caches.collect import together
    from foundry.pack import add_files

    try:
        found = collector.collect()
        files = together(files_of(earlier), found) if earlier else found.files
    except Exception as error:  # the graphs are worth an archive without them
        text = f"JIT caches are not kept: {type(error).__name__}: {error}"
        findings = [*findings, Finding(CACHE_LEFT_OUT, Severity.WARN, text)]
        return replace(capture, findings=tuple(findings)), findings
    findings = [*findings, *found.findings]
    return replace(add_files(capture, files), findings=tuple(findings)), findings


def has_more(collector: Collector | None, names: Container[tuple[str, str]]) -> bool:
    """Tell whether there are files by now, (cache, path), that an archive does not have."""
    if collector is None:
        return False
    try:
        return any(file[:2] not in names for file in collector.collect().files)
    except Exception:  # what went wrong was told, or will be, where the files are added
        return False


def files_of(capture: Capture) -> list[CacheFile]:
    """Give the files of a capture with their bytes."""
    return [(file.cache, file.path, file.mode, capture.blobs[file.blob]) for file in capture.files]


def place(
    archive_path: Path, summary: Summary, beside: Path | None, environment: Mapping[str, str], listener: Listener
) -> Placed | None:
    """Put the cache files of an archive in place; None if it has none. What fails is a warning."""
    if not summary.files:
        return None
    from foundry.caches import note
    from foundry.caches.kinds import folders
    from foundry.caches.outcome import Placed

    try:
        here = folders(environment, _working_folder())
        noted = note.read(beside, here) if beside else note.Noted()
        if noted.complete:
            return Placed(there=noted.files)
        from foundry.archive import open_archive
        from foundry.caches.place import Item
        from foundry.caches.place import place as place_items

        with listener.step("putting JIT caches in place"), open_archive(archive_path) as opened:
            blobs = opened.head.blobs
            items = [
                Item(file.cache, file.path, file.mode, entry.size, entry.sha256, partial(opened.blob, file.blob))
                for file in opened.head.files
                if not (entry := blobs[file.blob]).library
            ]
            placed = place_items(items, here, noted)
        if beside:
            note.write(beside, placed.marks, here, complete=not placed.faults)
    except Exception as error:
        text = str(error) or type(error).__name__
        placed = Placed(faults=[text])
    for fault in placed.faults:
        listener.warn(f"a JIT cache is not in place: {fault}")
    return placed


def note_beside(images: Path, placed: Placed, environment: Mapping[str, str]) -> None:
    """Note for later starts what was put in place, beside images that were not there then."""
    from foundry.caches import note
    from foundry.caches.kinds import folders

    note.write(images, placed.marks, folders(environment, _working_folder()), complete=not placed.faults)


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "/"
