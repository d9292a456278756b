"""What stands against graphs: first reason of each, and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from foundry.findings import PROOF_MOVED_OTHERWISE, PROOF_NOISE_KNOWN, PROOF_NOT_MOVED, PROOF_UNLIKE, Finding, Severity
from foundry.model import Graph, NodeType, Process
from foundry.model.constants import NONE

ORDER = (PROOF_UNLIKE, PROOF_NOISE_KNOWN, PROOF_MOVED_OTHERWISE, PROOF_NOT_MOVED)


@dataclass
class Verdicts:
    """Collects what contradicts graphs of the first capture, by index, and what keeps them from being proven."""

    contradicted: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    withheld: dict[int, dict[str, list[str]]] = field(default_factory=dict)

    def contradict(self, graph: int, code: str, text: str) -> None:
        """Note that two runs do not agree on what the graph is."""
        self.contradicted.setdefault(graph, {}).setdefault(code, []).append(text)

    def withhold(self, graph: int, code: str, text: str) -> None:
        """Note why the graph may be used at the recorded base only."""
        self.withheld.setdefault(graph, {}).setdefault(code, []).append(text)

    def proven(self, graphs: Sequence[int]) -> list[int]:
        """Give those of the graphs that nothing stands against."""
        return [at for at in graphs if at not in self.contradicted and at not in self.withheld]

    def findings(self, process: Process) -> list[Finding]:
        """Tell each graph's, the first of each code with the number of others."""
        found = []
        for at in sorted({*self.contradicted, *self.withheld}):
            where = f"{process.role}, graph {process.graphs[at].name}"
            for codes in (self.contradicted.get(at, {}), self.withheld.get(at, {})):
                found += [
                    Finding(code, Severity.WARN, codes[code][0] + _more(codes[code]), where)
                    for code in ORDER
                    if code in codes
                ]
        return found

    def judged(self, graphs: Sequence[Graph]) -> tuple[Graph, ...]:
        """Give the graphs, those that are contradicted with the reason."""
        judged = list(graphs)
        for at, codes in self.contradicted.items():
            if judged[at].restorable:
                code = next(code for code in ORDER if code in codes)
                judged[at] = replace(judged[at], reason_code=code, reason=codes[code][0] + _more(codes[code]))
        return tuple(judged)


def _more(texts: Sequence[str]) -> str:
    return f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""


def place_of(process: Process, graph: int, body: int, node: int, what: str) -> str:
    """Name a place in a node of a graph."""
    inner = f" of child graph {body - process.graphs[graph].body}" if body != process.graphs[graph].body else ""
    table = process.groups[int(process.bodies[body])].nodes
    number = int(table["kernel"][node])
    kernel = int(table["type"][node]) == NodeType.KERNEL and number != NONE
    name = f", `{process.kernels[number].name}`" if kernel else ""
    return f"node {node}{inner}{name}, {what}"
