"""All processes of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from foundry.errors import SpoolError
from foundry.findings import SPOOL_TORN_TAIL, Finding, Severity
from foundry.model import Capture, Range
from foundry.pack.blobs import BlobStore
from foundry.pack.libraries import Origin
from foundry.pack.process import ProcessPacker
from foundry.pack.siblings import refused
from foundry.spool import Entry, Spool, events, process_folders, read_spool


def pack_session(
    folder: Path,
    context: dict[str, str],
    all_kernels: bool,
    origin: Origin,
    ranges: dict[str, tuple[Range, ...]],
    blobs: Callable[[Sequence[bytes]], None] | None,
) -> tuple[Capture, list[Finding]]:
    """Pack each process folder, in the order of their names."""
    folders = process_folders(folder)
    if not folders:
        raise SpoolError(
            f"no process left a spool in `{folder}`", hint="only processes that initialise CUDA under the hook do"
        )
    findings: list[Finding] = []
    store = BlobStore()
    processes = []
    for path in folders:
        spool = read_spool(path)
        if spool is None:
            text = "the process was stopped before its spool began"
            findings.append(Finding(SPOOL_TORN_TAIL, Severity.WARN, text, path.name))
            continue
        findings.extend(spool.findings)
        packer = ProcessPacker(spool, store, findings, origin)
        for entry in _kept(spool):
            packer.fold(entry)
        processes.append(packer.finish(all_kernels, blobs))
        ranges[processes[-1].role] = tuple(packer.memory.ranges)
    capture = Capture(refused(processes, findings), tuple(store.blobs), context, (), tuple(findings))
    return capture, findings


def _kept(spool: Spool) -> list[Entry]:
    """Give all events, or those up to the last commit if the spool broke off in the middle of a frame."""
    if spool.ended or not spool.torn:
        return spool.entries
    commits = [index for index, entry in enumerate(spool.entries) if isinstance(entry.event, events.Commit)]
    return spool.entries[: commits[-1] + 1] if commits else spool.entries
