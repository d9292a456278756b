"""The summary section, and what the table of contents tells. Costs a few kilobytes of reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from foundry.archive import layout
from foundry.archive.summaries import ArenaSummary, CodeSummary, DeviceSummary, ProcessSummary, SectionSummary, Summary
from foundry.archive.text import Fields, decode, encode, widened
from foundry.findings import Severity

if TYPE_CHECKING:
    from foundry.archive.heads import Head
    from foundry.archive.opened import Opened
    from foundry.model import Process

_WORD = 0xFFFFFFFF
_MIG = 2


def summary_of(opened: Opened) -> Summary:
    """Read the summary section; one that is not there is made from the others."""
    fields = opened.summary_fields()
    if fields is None:
        fields = decode(encode(encode_summary(opened.head, opened.processes())))
    return Summary(
        capture_id=opened.capture_id,
        major=opened.major,
        minor=opened.minor,
        file_size=opened.size,
        raw_size=sum(section.raw for section in opened.sections),
        sections=tuple(
            SectionSummary(
                kind=section.name,
                process=None if section.process == layout.WHOLE else section.process,
                offset=section.offset,
                stored=section.stored,
                raw=section.raw,
                critical=section.critical,
                digest=section.digest.hex(),
            )
            for section in opened.sections
        ),
        context=fields.texts("context"),
        packages=fields.texts("packages"),
        processes=fields.objects("processes", _read_process),
        files=fields.integer("files"),
        findings=fields.integers("findings"),
        codes=fields.objects("codes", _read_code),
        outside=fields.integer("outside"),
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
        arenas=item.objects("arenas", _read_arena),
        sets=item.integers("sets"),
        proof=item.integers("proof") if item.has("proof") else {},
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


def _read_arena(item: Fields) -> ArenaSummary:
    return ArenaSummary(
        device=item.integer("device", _WORD),
        arena=item.integer("arena", _WORD),
        allocations=item.integer("allocations"),
        bytes=item.wide("bytes"),
        live=item.integer("live"),
        live_bytes=item.wide("live_bytes"),
    )


def _read_code(item: Fields) -> CodeSummary:
    return CodeSummary(item.text("code"), item.text("severity"), item.integer("count"))


def encode_summary(head: Head, processes: Iterable[Process]) -> dict[str, Any]:
    """Make the JSON object of a summary section."""
    counts = Counter(Severity(item.severity).name.lower() for item in head.findings)
    codes = Counter((Severity(item.severity), item.code) for item in head.findings)
    return {
        "context": head.context,
        "packages": head.packages,
        "files": len(head.files),
        "findings": dict(counts),
        "codes": [
            {"code": code, "severity": severity.name.lower(), "count": codes[severity, code]}
            for severity, code in sorted(codes, key=lambda key: (-key[0], -codes[key], key[1]))
        ],
        "outside": sum(entry.library is not None for entry in head.blobs),
        "processes": [_process(process) for process in processes],
    }


def _process(process: Process) -> dict[str, Any]:
    sets: dict[str, int] = {}
    for graph in process.graphs:
        sets[graph.set] = sets.get(graph.set, 0) + 1
    sizes = [len(group.nodes) for group in process.groups]
    proof = process.proof
    proven = {"graphs": len(proof.graphs), "words": proof.moving, "noise": widened(proof.noise)} if proof else {}
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
        "arenas": _arenas(process),
        "sets": sets,
        **({"proof": proven} if proven else {}),
    }


def _arenas(process: Process) -> list[dict[str, Any]]:
    counted: dict[tuple[int, int], list[int]] = {}
    table = process.allocations
    columns = (table[name].tolist() for name in ("device", "arena", "size", "died"))
    for device, arena, size, died in zip(*columns, strict=True):
        sums = counted.setdefault((device, arena), [0, 0, 0, 0])
        live = died == _WORD
        for index, value in enumerate((1, size, live, size * live)):
            sums[index] += value
    return [
        {
            "device": device,
            "arena": arena,
            "allocations": made,
            "bytes": widened(size),
            "live": live,
            "live_bytes": widened(live_size),
        }
        for (device, arena), (made, size, live, live_size) in sorted(counted.items())
    ]
