"""Compares two open archives, a process at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from foundry.diff.fingerprint import head_changes, process_changes
from foundry.diff.flat import Flat, pair
from foundry.diff.kernels import image_changes, kernel_changes
from foundry.diff.memory import memory_changes
from foundry.diff.nodes import compare_nodes
from foundry.diff.report import Change, Kind, Report
from foundry.diff.topology import edge_changes, graph_changes, topology_changes
from foundry.diff.words import Source
from foundry.machine import reads_of
from foundry.model import Process

if TYPE_CHECKING:
    from foundry.archive.opened import Opened

Digests = tuple[bytes, ...]


def examine_archives(before: Opened, after: Opened) -> Report:
    """Tell what changed. Two archives with the same capture id are equal, and nothing of them is unpacked."""
    report = Report(before.capture_id, after.capture_id)
    if report.identical:
        return report
    report.add(head_changes(before.head, after.head))
    report.add(_roles(before.roles, after.roles))
    digests = [tuple(entry.sha256 for entry in opened.head.blobs) for opened in (before, after)]
    for index, role in enumerate(before.roles):
        if role in after.roles:
            left, right = before.process(index), after.process(after.roles.index(role))
            reads = _reads((left, before), (right, after))
            compare_processes(report, role, (left, digests[0]), (right, digests[1]), reads)
    return report


def compare_processes(
    report: Report,
    where: str,
    left: tuple[Process, Digests],
    right: tuple[Process, Digests],
    reads: tuple[Source, Source] | None = None,
) -> None:
    """Tell what changed in the processes of a role, each given with the digests of its archive's blobs.

    `reads` tells which bytes of parameters launches read; without it all of them count.
    """
    before, after = left[0], right[0]
    report.add(process_changes(where, before, after))
    report.add(memory_changes(where, left, right))
    images, found = image_changes(where, left, right)
    report.add(found)
    kernels, found = kernel_changes(where, before, after, images)
    report.add(found)
    flats = Flat(before, kernels.before), Flat(after, kernels.after)
    pairing = pair(where, *flats)
    report.add(topology_changes(where, flats, pairing))
    report.add(graph_changes(where, flats, pairing))
    compare_nodes(report, where, flats, pairing, reads)
    report.add(edge_changes(flats, pairing))


def _reads(*sides: tuple[Process, Opened]) -> tuple[Source, Source]:
    """Give what looks into the code of kernels when it is asked to; code that both captures have is read once."""
    shared: dict[bytes, bytes] = {}

    def source(process: Process, opened: Opened) -> Source:
        def blob(index: int) -> bytes | None:
            entry = opened.head.blobs[index]
            if entry.library is not None:
                return None
            if entry.sha256 not in shared:
                shared[entry.sha256] = opened.blob(index)
            return shared[entry.sha256]

        return lambda rows: reads_of(process, blob, rows)

    first, second = (source(*side) for side in sides)
    return first, second


def _roles(before: tuple[str, ...], after: tuple[str, ...]) -> Iterator[Change]:
    for role in before:
        if role not in after:
            yield Change(Kind.PROCESSES, role, "process", "present", "none")
    for role in after:
        if role not in before:
            yield Change(Kind.PROCESSES, role, "process", "none", "present")
