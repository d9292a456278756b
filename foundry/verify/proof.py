"""What a second capture proved, against what the nodes say: no address of a proven graph may be left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from foundry.findings import VERIFY_PROOF, Severity
from foundry.model import NodeType, Process
from foundry.model.pointers import Target
from foundry.model.tables import Table
from foundry.verify.report import Place, Problem
from foundry.verify.sure import rows_of


def check_proof(process: Process, pointers: Table) -> Iterator[Problem]:
    """Find proven graphs with an address in live memory that would stay where it is when the graph is moved."""
    proof = process.proof
    if proof is None:
        return
    listed = {
        NodeType.KERNEL: proof.parameters["row"].astype(np.int64) << 32 | proof.parameters["offset"],
        NodeType.MEMSET: proof.memsets.astype(np.int64) << 32,
        NodeType.MEMCPY: proof.copies["row"].astype(np.int64) << 32 | proof.copies["offset"],
    }
    live = pointers[(pointers["kind"] == Target.ALLOCATION) & np.isin(pointers["graph"], proof.graphs)]
    left: list[npt.NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
    for kind, keys in listed.items():
        part = live[live["type"] == kind]
        key = rows_of(process, kind, part) << 32 | part["offset"].astype(np.int64)
        left.append(part["graph"][~np.isin(key, keys)])
    graphs, counts = np.unique(np.concatenate(left), return_counts=True)
    for at, count in zip(graphs.tolist(), counts.tolist(), strict=True):
        graph = process.graphs[at]
        text = f"{count} words point to memory and are not among those that move, though the graph is called proven"
        yield Problem(VERIFY_PROOF, Severity.ERROR, text, Place(process.role, (graph.set, graph.key)))
