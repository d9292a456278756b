"""The deep level: all that an archive says, against all else that it says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from foundry.archive.brief import encode_summary
from foundry.archive.text import widened
from foundry.errors import ArchiveError
from foundry.findings import BLOB_OUTSIDE, VERIFY_CONTENTS, VERIFY_SUMMARY, Severity
from foundry.model import Process
from foundry.model.tables import Table
from foundry.verify.graphs import check_graphs
from foundry.verify.kernels import Wanted, check_image, of_outside, wanted_kernels
from foundry.verify.places import Places
from foundry.verify.pointers import check_pointers, pointers_of
from foundry.verify.proof import check_proof
from foundry.verify.report import Place, Problem, Report, of_archive
from foundry.verify.sure import sure_pointers

if TYPE_CHECKING:
    from foundry.archive import ProcessSummary
    from foundry.archive.opened import Opened


class Deep:
    """Takes the processes one after the other, and then looks at each blob once."""

    def __init__(self, opened: Opened, report: Report) -> None:
        self._opened = opened
        self._report = report
        self._wanted: dict[int, list[Wanted]] = {}
        self._summary = self._read_summary()

    def process(self, index: int, process: Process) -> None:
        """Check a process, and keep which kernels its graphs want of which blob."""
        places = Places(process)
        pointers = pointers_of(process)
        self._report.pointers += len(pointers)
        for problem in check_graphs(process, places):
            self._report.add(problem)
        for problem in self._pointers(process, places, pointers):
            self._report.add(problem)
        for problem in _contents(process):
            self._report.add(problem)
        for problem in self._same_summary(index, process):
            self._report.add(problem)
        for blob, wanted in wanted_kernels(process, places):
            self._wanted.setdefault(blob, []).append(wanted)

    def _pointers(self, process: Process, places: Places, pointers: Table) -> list[Problem]:
        """Check what words point to; only where something is wrong with all of them, the code tells which are read."""
        found = [*check_pointers(process, places, pointers), *check_proof(process, pointers)]
        if not found:
            return []
        try:
            sure = sure_pointers(process, pointers, self._opened)
        except ArchiveError as error:
            return [*found, of_archive(error)]
        return [*check_pointers(process, places, pointers, sure), *check_proof(process, pointers[sure])]

    def finish(self) -> None:
        """Check the images of all processes, and with them every section that no process has."""
        for blob, place in ((blob, entry.library) for blob, entry in enumerate(self._opened.head.blobs)):
            if place and blob in self._wanted:
                text = f"lies in the library `{place.name}`, build id {place.build_id}, and was not looked into"
                self._report.add(of_outside(self._wanted[blob], BLOB_OUTSIDE, text))
        try:
            for blob, data in self._opened.blobs():
                wanted = self._wanted.get(blob, [])
                self._report.kernels_checked += len(wanted)
                for problem in check_image(data, wanted):
                    self._report.add(problem)
        except ArchiveError as error:
            self._report.add(of_archive(error))

    def _read_summary(self) -> tuple[ProcessSummary, ...]:
        """Read what the summary section says of the processes; nothing if there is none."""
        try:
            return self._opened.summary().processes if self._opened.summary_fields() else ()
        except ArchiveError as error:
            self._report.add(of_archive(error))
            return ()

    def _same_summary(self, index: int, process: Process) -> Iterator[Problem]:
        """Compare the part of the summary that is of this process with the process."""
        if index >= len(self._summary):
            return
        found = _as_text(dataclasses.asdict(self._summary[index]))
        (expected,) = _as_text(encode_summary(self._opened.head, [process])["processes"])
        expected.setdefault("proof", {})
        for name in sorted(expected):
            if name in found and found[name] != expected[name]:
                text = f"the summary says of `{name}` {found[name]!r}, it is {expected[name]!r}"
                yield Problem(VERIFY_SUMMARY, Severity.ERROR, text, Place(process.role))


def _as_text(value: Any) -> Any:
    """Bring a value to the types that a section of text has."""
    if isinstance(value, dict):
        return {name: _as_text(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return widened(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _contents(process: Process) -> Iterator[Problem]:
    """Find recorded bytes that belong to no memory that a restore could fill."""
    for number, item in enumerate(process.contents):
        last = item.address + max(item.size, 1) - 1
        arenas = [(device.arena(item.address), device.arena(last)) for device in process.devices]
        if not any(begin is not None and begin == end for begin, end in arenas):
            text = f"contents {number} are of {item.size} bytes at {item.address:#x}, in no arena"
            yield Problem(VERIFY_CONTENTS, Severity.WARN, text, Place(process.role))
