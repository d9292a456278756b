"""The summary section, and what the table of contents tells. Costs a few kilobytes of reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from foundry.archive import layout
from foundry.archive.container import Container
from foundry.archive.layout import Kind, kind_name
from foundry.archive.summaries import DeviceSummary, ProcessSummary, SectionSummary, Summary
from foundry.archive.text import ContentError, Fields, decode, widened
from foundry.findings import ARCHIVE_CONTENT, Severity

if TYPE_CHECKING:
    from foundry.model import Capture, Process

_WORD = 0xFFFFFFFF
_MIG = 2


def read_summary(path: Path) -> Summary:
    """Read the header, the table of contents and the summary section."""
    with Container(path) as container:
        section = container.only(Kind.SUMMARY)
        if section is None:
            from foundry.archive.reader import read_archive
            from foundry.archive.text import encode

            fields = decode(encode(encode_summary(read_archive(path))))
        else:
            try:
                fields = decode(container.raw(section))
            except ContentError as error:
                raise container.error(ARCHIVE_CONTENT, f"its summary: {error}") from None
        try:
            return _summary(container, fields)
        except ContentError as error:
            raise container.error(ARCHIVE_CONTENT, f"its summary: {error}") from None


def _summary(container: Container, fields: Fields) -> Summary:
    return Summary(
        capture_id=container.capture_id.hex(),
        major=container.major,
        minor=container.minor,
        file_size=container.size,
        raw_size=sum(section.raw for section in container.sections),
        sections=tuple(
            SectionSummary(
                kind=kind_name(section.kind),
                process=None if section.process == layout.WHOLE else section.process,
                offset=section.offset,
                stored=section.stored,
                raw=section.raw,
                critical=section.critical,
                digest=section.digest.hex(),
            )
            for section in container.sections
        ),
        context=fields.texts("context"),
        processes=fields.objects("processes", _read_process),
        files=fields.integer("files"),
        findings=fields.integers("findings"),
    )


def _read_process(item: Fields) -> ProcessSummary:
    return ProcessSummary(
        role=item.text("role"),
        executable=item.text("executable"),
        ranks=item.texts("ranks"),
        driver_version=item.integer("driver_version", _WORD),
        driver_library=item.text("driver_library"),
        simulated=item.truth("simulated"),
        devices=item.objects("devices", _read_device),
        graphs=item.integer("graphs"),
        restorable=item.integer("restorable"),
        groups=item.integer("groups"),
        nodes=item.integer("nodes"),
        kernels=item.integer("kernels"),
        images=item.integer("images"),
        allocations=item.integer("allocations"),
        sets=item.integers("sets"),
    )


def _read_device(item: Fields) -> DeviceSummary:
    return DeviceSummary(
        ordinal=item.integer("ordinal", _WORD),
        name=item.text("name"),
        compute_major=item.integer("compute_major", _WORD),
        compute_minor=item.integer("compute_minor", _WORD),
        multiprocessors=item.integer("multiprocessors", _WORD),
        total_memory=item.wide("total_memory"),
        mig=item.truth("mig"),
    )


def encode_summary(capture: Capture) -> dict[str, Any]:
    """Make the JSON object of a capture's summary section."""
    counts: dict[str, int] = {}
    for item in capture.findings:
        name = Severity(item.severity).name.lower()
        counts[name] = counts.get(name, 0) + 1
    return {
        "context": capture.context,
        "files": len(capture.files),
        "findings": counts,
        "processes": [_process(process) for process in capture.processes],
    }


def _process(process: Process) -> dict[str, Any]:
    sets: dict[str, int] = {}
    for graph in process.graphs:
        sets[graph.set] = sets.get(graph.set, 0) + 1
    sizes = [len(group.nodes) for group in process.groups]
    return {
        "role": process.role,
        "executable": process.executable,
        "ranks": process.ranks,
        "driver_version": process.driver_version,
        "driver_library": process.driver_library,
        "simulated": process.simulated,
        "devices": [
            {
                "ordinal": device.ordinal,
                "name": device.name,
                "compute_major": device.compute_major,
                "compute_minor": device.compute_minor,
                "multiprocessors": device.multiprocessors,
                "total_memory": widened(device.total_memory),
                "mig": bool(device.flags & _MIG),
            }
            for device in process.devices
        ],
        "graphs": len(process.graphs),
        "restorable": sum(graph.restorable for graph in process.graphs),
        "groups": len(process.groups),
        "nodes": sum(sizes[int(group)] for group in process.bodies),
        "kernels": len(process.kernels),
        "images": len(process.images),
        "allocations": len(process.allocations),
        "sets": sets,
    }
