"""A capture, process by process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from foundry.diff.flat import Flat, Pairing
from foundry.diff.places import Places
from foundry.findings import PROOF_UNLIKE, Finding, Severity
from foundry.machine import reads_of
from foundry.model import Capture, Process, Proof, Range
from foundry.model.moving import Index
from foundry.model.proof import PLACE
from foundry.model.reads import Reads
from foundry.pack import driver_events
from foundry.proof import rows, texts
from foundry.proof.alignment import aligned, compare_shapes, obstacle
from foundry.proof.verdicts import Verdicts
from foundry.proof.words import KnownMemory, Nodes, ParameterWords, Side

Ranges = Mapping[str, Sequence[Range]]
"""Of each role, memory that the hook did not place, with all its addresses."""


@dataclass(frozen=True)
class Outcome:
    """The first capture with its proofs, and what there is to tell.

    `graphs` counts those that a restore builds, `proven` which of them may lie elsewhere; `moving` and `noise` words.
    """

    capture: Capture
    findings: tuple[Finding, ...]
    graphs: int
    proven: int
    moving: int
    noise: int


def prove(first: Capture, second: Capture, ranges: tuple[Ranges, Ranges] = ({}, {})) -> Outcome:
    """Compare two captures of one command, of which the second had all its memory elsewhere."""
    findings: list[Finding] = []
    processes = []
    for process in first.processes:
        other = second.process(process.role)
        known = tuple(side.get(process.role, each.ranges if each else ()) for side, each in zip(ranges, (process, other), strict=True))  # fmt: skip  # noqa: E501
        why = "it is not in the second capture"
        if other is not None:
            why = obstacle(process, other, (first.blobs, second.blobs))
        wanted = [at for at, graph in enumerate(process.graphs) if graph.restored]
        if other is None or why:
            if wanted:
                findings.append(Finding(PROOF_UNLIKE, Severity.WARN, why, process.role))
            processes.append(process)
            continue
        reads = [reads_of(each, side.blobs.__getitem__) for each, side in ((process, first), (other, second))]
        proven, found = _process(process, other, wanted, known, reads)
        processes.append(proven)
        findings += found
    wanted_all = sum(graph.restored for process in first.processes for graph in process.graphs)
    proofs = [process.proof for process in processes if process.proof is not None]
    return Outcome(
        replace(first, processes=tuple(processes), findings=(*first.findings, *findings)),
        tuple(findings),
        wanted_all,
        sum(len(proof.graphs) for proof in proofs),
        sum(proof.moving for proof in proofs),
        sum(proof.noise for proof in proofs),
    )


def _process(
    first: Process,
    second: Process,
    wanted: Sequence[int],
    known: tuple[Sequence[Range], ...],
    reads: Sequence[Reads],
) -> tuple[Process, list[Finding]]:
    flats, pairing = aligned(first.role, first, second)
    verdicts = Verdicts()
    compare_shapes(flats, pairing, set(wanted), verdicts)
    sides = [
        Side(flat, Places(flat.process), KnownMemory(flat.process, ranges), each)
        for flat, ranges, each in zip(flats, known, reads, strict=True)
    ]
    pair = sides[0], sides[1]
    nodes = _nodes(flats, pairing, verdicts.proven(wanted))
    words = ParameterWords(pair, _owned(flats, nodes, "kernel"), verdicts)
    parameters, parameter_graphs = words.run()
    memsets, memset_graphs = rows.memsets(pair, _owned(flats, nodes, "memset"), verdicts)
    copies, copy_graphs = rows.copies(pair, _owned(flats, nodes, "copy"), verdicts)
    partners = dict(pairing.graphs)
    found: list[tuple[int, int]] = []
    for at in verdicts.proven(wanted):
        graphs = at, partners[at]
        both = first.graphs[graphs[0]].metadata, second.graphs[graphs[1]].metadata
        places, why = texts.moving(both, (sides[0].places, sides[1].places), graphs)
        if why:
            verdicts.withhold(at, PROOF_UNLIKE, why)
        found += [(at, place) for place in places]
    judged = driver_events.judge(replace(first, graphs=verdicts.judged(first.graphs)))
    proven = [at for at in verdicts.proven(wanted) if judged.graphs[at].restorable]

    def of_proven(graphs: Index) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.isin(graphs, proven)

    proof = Proof(
        np.array(proven, np.uint32),
        parameters[of_proven(parameter_graphs)],
        memsets[of_proven(memset_graphs)],
        copies[of_proven(copy_graphs)],
        np.array([place for place in found if place[0] in set(proven)], PLACE),
        int(words.noise[proven].sum()),
    )
    return replace(judged, proof=proof), verdicts.findings(first)


def _nodes(flats: tuple[Flat, Flat], pairing: Pairing, graphs: Sequence[int]) -> Nodes:
    """Give the nodes of these graphs."""
    left, right, stretch = pairing.nodes(flats)
    partners = dict(pairing.graphs)
    owners = np.array([each.graph for each in pairing.stretches] or [0], np.int64)[stretch]
    others = np.array([partners[each.graph] for each in pairing.stretches] or [0], np.int64)[stretch]
    mask = np.isin(owners, graphs)
    return Nodes((left[mask], right[mask]), (owners[mask], others[mask]))


def _owned(flats: tuple[Flat, Flat], nodes: Nodes, name: str) -> Nodes:
    return nodes.some(flats[0].owns(name, nodes.nodes[0]) & flats[1].owns(name, nodes.nodes[1]))
