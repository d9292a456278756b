"""From an archive file to a capture."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from foundry.archive import layout
from foundry.archive.columns import decode_allocations, decode_bodies, decode_groups
from foundry.archive.container import Container
from foundry.archive.layout import Kind
from foundry.archive.parameters import decode_parameters
from foundry.archive.process_text import decode_process
from foundry.archive.text import ContentError, Fields, decode
from foundry.archive.timeline import decode_timeline
from foundry.findings import ARCHIVE_CONTENT, Finding, Severity
from foundry.model import Capture, File, Process
from foundry.model.checks import UnsoundError, check_capture, check_topology, row_counts
from foundry.model.views import kernel_ids_of, parameter_sizes_of

_MOST_PROCESSES = 4096
_THREADS = 8
_SMALL = 1 << 20


def read_archive(path: Path) -> Capture:
    """Read and check an archive."""
    with Container(path) as container:
        try:
            capture = _read(container)
            check_capture(capture)
        except (ContentError, UnsoundError) as error:
            raise container.error(ARCHIVE_CONTENT, str(error)) from None
        return capture


def _read(container: Container) -> Capture:
    head = decode(container.raw(container.required(Kind.CAPTURE)))
    count = head.integer("processes", _MOST_PROCESSES)
    wanted = [container.required(kind, index) for index in range(count) for kind in layout.OF_PROCESS]
    blob_sections = [section for section in container.sections if section.kind == Kind.BLOBS]
    for section in container.sections:
        if section.kind in layout.OF_PROCESS and section.process >= count:
            raise ContentError(f"a section belongs to process {section.process} of {count}")
    for index, section in enumerate(blob_sections):
        if section.process != layout.WHOLE or (section.raw < layout.BLOB_CUT and index + 1 < len(blob_sections)):
            raise ContentError("blobs are not cut as they must be")
    raw = container.raw_of([*wanted, *blob_sections])
    width = len(layout.OF_PROCESS)
    times = _timeline(container, count)
    processes = tuple(_process(raw[index * width : (index + 1) * width], spent) for index, spent in enumerate(times))
    return Capture(
        processes=processes,
        blobs=_blobs(head, raw[len(wanted) :]),
        context=head.texts("context"),
        files=head.objects("files", _file),
        findings=head.objects("findings", _finding),
    )


def _timeline(container: Container, count: int) -> tuple[dict[str, int], ...]:
    section = container.only(Kind.TIMELINE)
    return decode_timeline(decode(container.raw(section)), count) if section else tuple({} for _ in range(count))


def _process(raw: list[bytes], spent: dict[str, int]) -> Process:
    groups = decode_groups(raw[2])
    tables: dict[str, Any] = decode_bodies(raw[3])
    check_topology(groups, tables["bodies"], row_counts(tables))
    kernels, sizes = kernel_ids_of(groups, tables["bodies"]), parameter_sizes_of(groups, tables["bodies"])
    tables["groups"], tables["spent"] = groups, spent
    tables["allocations"] = decode_allocations(raw[1])
    tables["parameters"] = decode_parameters(raw[4], kernels, sizes)
    return decode_process(decode(raw[0]), tables)


def _blobs(head: Fields, sections: list[bytes]) -> tuple[bytes, ...]:
    listed = head.objects("blobs", lambda item: (item.wide("size"), item.hexadecimal("sha256", 32)))
    total = sum(len(section) for section in sections)
    if sum(size for size, _ in listed) != total:
        raise ContentError(f"blobs have {total} bytes, their list does not")
    joined = sections[0] if len(sections) == 1 else b"".join(sections)
    found, at = [], 0
    for size, _ in listed:
        found.append(joined[at : at + size])
        at += size
    for index, ((_, expected), digest) in enumerate(zip(listed, _digests(found), strict=True)):
        if digest != expected:
            raise ContentError(f"blob {index} does not match its digest")
    return tuple(found)


def _digests(blobs: list[bytes]) -> list[bytes]:
    def digest(blob: bytes) -> bytes:
        return hashlib.sha256(blob).digest()

    if sum(map(len, blobs)) < _SMALL:
        return [digest(blob) for blob in blobs]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(digest, blobs))


def _file(item: Fields) -> File:
    return File(item.text("cache"), item.text("path"), item.integer("mode", 0o777), item.integer("blob", layout.WHOLE))


def _finding(item: Fields) -> Finding:
    severity = Severity(item.integer("severity", max(Severity)))
    return Finding(item.text("code"), severity, item.text("text"), item.text("where"))
