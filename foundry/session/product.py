"""From the spool of a running or ended command to an archive at its final name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from foundry.errors import NoHookedProcessError
from foundry.session.words import count, readable_size

if TYPE_CHECKING:
    from foundry.archive import Ahead
    from foundry.findings import Finding
    from foundry.model import Capture, Range


@dataclass(frozen=True)
class Product:
    """An archive that was written, in numbers."""

    path: Path
    capture_id: str
    size: int
    graphs: int
    restorable: int
    images: int
    simulated: bool
    complete: bool
    findings: tuple[Finding, ...]
    left_out: int = 0
    left_out_note: str = ""
    cache_files: int = 0
    cache_bytes: int = 0

    def line(self) -> str:
        """Write the one line that a capture ends with."""
        parts = [
            f"`{self.path}`",
            readable_size(self.size),
            count(self.graphs, "graph"),
            count(self.images, "kernel image"),
        ]
        if self.cache_files:
            parts.append(f"{count(self.cache_files, 'cache file')} of {readable_size(self.cache_bytes)}")
        if self.restorable < self.graphs:
            parts.append(f"{self.graphs - self.restorable} not restorable")
        if self.simulated:
            parts.append("simulated")
        told = [finding for finding in self.findings if finding.severity > 0]
        if told:
            parts.append(count(len(told), "finding"))
        return ", ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        return {
            "archive": str(self.path),
            "capture_id": self.capture_id,
            "bytes": self.size,
            "graphs": self.graphs,
            "restorable": self.restorable,
            "images": self.images,
            "simulated": self.simulated,
            "complete": self.complete,
            "left_out": self.left_out,
            "cache_files": self.cache_files,
            "cache_bytes": self.cache_bytes,
            "findings": [finding.as_dict() for finding in self.findings],
        }


def processes_seen(spool: Path) -> int:
    """Count how many processes have made a spool."""
    try:
        return sum(1 for folder in spool.iterdir() if (folder / "events").is_file())
    except OSError:
        return 0


def pack(
    spool: Path,
    context: Mapping[str, str],
    *,
    all_kernels: bool,
    disarmed: Mapping[str, str] | None = None,
    ranges: dict[str, tuple[Range, ...]] | None = None,
    ahead: Ahead | None = None,
) -> tuple[Capture, list[Finding]]:
    """Make the capture as it stands. NoHookedProcessError if no process of the command has used CUDA.

    `disarmed` are the processes that stopped recording, by role, with their reasons: a full disk keeps the spool itself
    from saying so. `ranges` is filled as by `foundry.pack`. `ahead` packs blobs meanwhile, for a `write` of all.
    """
    from foundry.findings import DISARMED, Finding, Severity
    from foundry.pack import pack as pack_spool
    from foundry.session.libraries import Distributions

    if not processes_seen(spool):
        if disarmed:
            role, reason = next(iter(disarmed.items()))
            raise NoHookedProcessError(f"nothing was recorded, so there is nothing to archive: {role}: {reason}")
        raise NoHookedProcessError(
            "no hooked CUDA process seen, so there is nothing to archive",
            hint="the command must use CUDA in a process that keeps `LD_PRELOAD`: "
            "not through `env -i`, `sudo`, a container or a remote worker",
        )
    distributions = Distributions()
    capture, findings = pack_spool(
        spool,
        context=context,
        all_kernels=all_kernels,
        origin=distributions.origin,
        ranges=ranges,
        blobs=ahead.begin if ahead else None,
    )
    told = {finding.where for finding in findings if finding.code == DISARMED}
    for role, reason in (disarmed or {}).items():
        if role not in told:
            text = f"recording ended early: {reason}"
            findings.append(Finding(DISARMED, Severity.ERROR, text, role))
    return replace(capture, findings=tuple(findings), packages=distributions.versions()), findings


def write(capture: Capture, findings: list[Finding], path: Path, *, force: bool, ahead: Ahead | None = None) -> Product:
    """Write the archive and measure it."""
    from foundry import archive
    from foundry.session import thin

    capture_id = archive.write(capture, path, force=force, ahead=ahead)
    graphs = [graph for process in capture.processes for graph in process.graphs]
    return Product(
        path=path,
        capture_id=capture_id,
        size=path.stat().st_size,
        graphs=len(graphs),
        restorable=sum(graph.restorable for graph in graphs),
        images=sum(len(process.images) for process in capture.processes),
        simulated=any(process.simulated for process in capture.processes),
        complete=all(process.complete for process in capture.processes),
        findings=tuple(findings),
        left_out=len(capture.outside),
        left_out_note=thin.note(capture),
        cache_files=len(capture.files),
        cache_bytes=sum(len(capture.blobs[file.blob]) for file in capture.files),
    )


def of_archive(path: Path) -> Product:
    """Measure an archive that stands there."""
    from foundry import archive

    found = archive.summary(path)
    return Product(
        path=path,
        capture_id=found.capture_id,
        size=found.file_size,
        graphs=found.graphs,
        restorable=sum(process.restorable for process in found.processes),
        images=sum(process.images for process in found.processes),
        simulated=any(process.simulated for process in found.processes),
        complete=True,
        findings=(),
    )


def worst_findings(findings: tuple[Finding, ...], most: int = 5) -> list[str]:
    """Choose the findings that a user should read, equal codes counted together, worst first."""
    told = sorted((f for f in findings if f.severity > 0), key=lambda f: -f.severity)
    counts = Counter(finding.code for finding in told)
    lines, seen = [], set()
    for finding in told:
        if finding.code not in seen:
            seen.add(finding.code)
            more = f" (and {counts[finding.code] - 1} more like it)" if counts[finding.code] > 1 else ""
            where = f"{finding.where}: " if finding.where else ""
            lines.append(f"{finding.code}: {where}{finding.text}{more}")
    return lines[:most] + ([f"and {len(lines) - most} other kinds"] if len(lines) > most else [])
