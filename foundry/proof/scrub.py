"""A capture without the noise in its kernel parameters, and what there is to tell of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from foundry.findings import DANGLING_WORD, SCRUB_KEPT, SCRUBBED, Finding, Severity
from foundry.model import Capture, Graph, Process
from foundry.model.moving import WORD, parameter_bytes
from foundry.model.pointers import find_pointers, in_arenas
from foundry.model.tables import frozen
from foundry.pack import audit
from foundry.proof.scrub_noise import Mask, Noise, ReadsOf, graph_of_bytes

NOT_PROVEN = "a second capture does not tell its noise from what it means"
NOT_RESTORABLE = "it is not restorable, so that nothing can be compared"
NO_NAME = "it has no name to ask for it by, so that nothing can be compared"
NO_PARTNER = "there is no second capture of its process to compare with"


def without(process: Process, mask: Mask, graphs: Collection[int], reads_of: ReadsOf | None = None) -> Process:
    """Give the process with the bytes of the mask zero in these graphs.

    What is left of a word must not look like an address: then all of it is zero, or, where a part of an address stands
    beside the noise, as it was.
    """
    zeroed = mask & np.isin(graph_of_bytes(process), list(graphs))
    data = np.where(zeroed, np.uint8(0), process.parameters)
    words = data.view("<u8")
    false = zeroed.reshape(-1, WORD).any(axis=1) & in_arenas(words, process.devices)
    words[false] = np.where(_beside_addresses(process)[false], process.parameters.view("<u8")[false], np.uint64(0))
    changed = replace(process, parameters=frozen(data))
    pointers = find_pointers(changed, changed.ranges, reads_of(changed) if reads_of else None)
    bounds = np.searchsorted(pointers["graph"], np.arange(len(process.graphs) + 1))
    counted = [
        audit.with_targets(graph, pointers[bounds[at] : bounds[at + 1]]) if at in graphs else graph
        for at, graph in enumerate(process.graphs)
    ]
    return replace(changed, graphs=tuple(counted))


def _beside_addresses(process: Process) -> Mask:
    """Tell which words hold a byte of an address that moves."""
    found = np.zeros(len(process.parameters) // WORD, np.bool_)
    if process.proof is not None:
        places = parameter_bytes(process, process.proof.parameters)
        found[places // WORD] = found[(places + WORD - 1) // WORD] = True
    return found


@dataclass(frozen=True)
class Outcome:
    """A capture in which the graphs that gave the same without their noise are without it, and what there is to tell.

    `graphs` counts all graphs, `clean` those without noise that could be told, `zeroed` bytes. `kept` are the others by
    role and index, with the reason.
    """

    capture: Capture
    findings: tuple[Finding, ...]
    graphs: int
    clean: int
    zeroed: int
    kept: dict[tuple[str, int], str]


def candidate(capture: Capture, found: Mapping[str, Noise], reads_of: ReadsOf | None = None) -> Capture:
    """Give the capture with all its noise zero, to be tried."""
    processes = [
        without(process, noisy.mask, noisy.graphs, reads_of) if (noisy := found.get(process.role)) else process
        for process in capture.processes
    ]
    return replace(capture, processes=tuple(processes))


def settle(
    capture: Capture,
    found: Mapping[str, Noise],
    reasons: Mapping[tuple[str, int], str],
    reads_of: ReadsOf | None = None,
) -> Outcome:
    """Zero the noise of every graph but those for which there is a reason to keep it, by role and index."""
    findings: list[Finding] = []
    processes, kept, zeroed = [], {}, 0
    for process in capture.processes:
        noisy = found.get(process.role)
        good: list[int] = []
        for at, graph in enumerate(process.graphs):
            why = _unknown(process, graph, at, noisy) or (
                reasons.get((process.role, at), "") if noisy is not None and noisy.counts[at] else ""
            )
            if why:
                kept[process.role, at] = why
            elif noisy is not None and noisy.counts[at]:
                good.append(at)
        if noisy is not None:
            process = without(process, noisy.mask, good, reads_of) if good else process
            count = int(noisy.counts[good].sum())
            zeroed += count
            left = any(role == process.role for role, _ in kept)
            findings.append(Finding(SCRUBBED, Severity.NOTE, _told(count, len(good), left), process.role))
        processes.append(process)
    findings += [
        Finding(SCRUB_KEPT, Severity.NOTE, why, f"{role}, graph {_named(capture, role, at)}")
        for (role, at), why in kept.items()
    ]
    before = _recounted(capture.findings, processes)
    scrubbed = replace(capture, processes=tuple(processes), findings=(*before, *findings))
    graphs = sum(len(process.graphs) for process in processes)
    return Outcome(scrubbed, tuple(findings), graphs, graphs - len(kept), zeroed, kept)


def _unknown(process: Process, graph: Graph, at: int, noisy: Noise | None) -> str:
    """Say why the noise of a graph is not known."""
    if not graph.restorable:
        return NOT_RESTORABLE
    if not graph.restored:
        return NO_NAME
    if noisy is None or process.proof is None:
        return NO_PARTNER
    return "" if at in process.proof.graphs else NOT_PROVEN


def _told(count: int, graphs: int, left: bool) -> str:
    if not count:
        return "no noise was made zero" if left else "no noise was found"
    what = "1 graph is" if graphs == 1 else f"{graphs} graphs is"
    return f"noise of {what} zero ({count} byte{'s' * (count != 1)}): replays gave the same without it"


def _named(capture: Capture, role: str, at: int) -> str:
    process = capture.process(role)
    assert process is not None
    return process.graphs[at].name


def _recounted(findings: Sequence[Finding], processes: Sequence[Process]) -> list[Finding]:
    """Tell of dangling words as they are now: noise may have looked like some."""
    now = {
        told.where: told
        for process in processes
        for graph in process.graphs
        if (told := audit.of_dangling_words(process.role, graph)) is not None
    }
    return [
        now.get(finding.where, finding) if finding.code == DANGLING_WORD else finding
        for finding in findings
        if finding.code != DANGLING_WORD or finding.where in now
    ]
