"""Processes of one name that ran beside each other: nothing would tell which of them a restored one is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from foundry.findings import AMBIGUOUS_PROCESS, Finding
from foundry.model import Process

_OF_RANK = re.compile(r"(rank-[^.]+)(?:\.\d+)?")
_TEXT = "another process of the same rank, name and arguments ran beside it, and nothing tells which is which"


def refused(processes: Iterable[Process], findings: Iterable[Finding]) -> tuple[Process, ...]:
    """Refuse the graphs of all processes of a name of which one told that another ran beside it."""
    names = {name_of(finding.where) for finding in findings if finding.code == AMBIGUOUS_PROCESS}
    return tuple(_refused(process) if name_of(process.role) in names else process for process in processes)


def name_of(role: str) -> str:
    """Leave out of a role the number that tells processes of one name apart."""
    of_rank = _OF_RANK.fullmatch(role)
    return of_rank[1] if of_rank else role.rpartition("-")[0]


def _refused(process: Process) -> Process:
    graphs = (
        replace(graph, reason_code=AMBIGUOUS_PROCESS, reason=_TEXT) if graph.restorable else graph
        for graph in process.graphs
    )
    return replace(process, graphs=tuple(graphs))
