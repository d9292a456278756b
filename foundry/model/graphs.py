"""Graphs: a topology that members share, and what each member has of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from foundry.model.tables import ByContent, Table, Words, frozen

_NO_ORDER: Words = frozen(np.zeros(0, np.uint32))


@dataclass(frozen=True, slots=True, eq=False)
class Group(ByContent):
    """Exact topology: nodes (`tables.NODE`) and edges (`tables.EDGE`). Graphs of one group may share a template.

    `order` is empty where each node has its dependencies in the order of `edges`. Else it names all edges, by the node
    that they lead to, in the order in which the driver keeps them.
    """

    nodes: Table
    edges: Table
    order: Words = field(default_factory=lambda: _NO_ORDER)

    @property
    def ordered_edges(self) -> Table:
        """The edges in an order in which they can be added so that each node gets its dependencies in theirs."""
        return self.edges[self.order] if len(self.order) else self.edges

    @property
    def dependencies(self) -> dict[int, list[int]]:
        """What each node depends on, in the order in which the driver keeps it."""
        found: dict[int, list[int]] = {}
        for start, end, _ in self.ordered_edges.tolist():
            found.setdefault(end, []).append(start)
        return found


@dataclass(frozen=True, slots=True)
class Graph:
    """An instantiated graph.

    `(set, key)` names it; unlabelled ones have the set "" and a key "#<ordinal>".
    `body` is the index of its top body in `Process.bodies`; `step` is when it was made; `first_use` its rank by first
    launch up to the last commit.
    `references` are the allocations (rows of `Process.allocations`) that its nodes point to.
    `reason` is empty if a restore can bring it back, else a text that names the first node that stands against it.
    """

    set: str
    key: str
    metadata: str
    body: int
    step: int
    device: int
    context: int
    instantiate_flags: int
    captured: bool
    first_use: int
    references: tuple[int, ...]
    dangling_words: int
    reason_code: str
    reason: str

    @property
    def restorable(self) -> bool:
        """Whether a restore can bring it back."""
        return not self.reason_code

    @property
    def restored(self) -> bool:
        """Whether a restore builds it: not those without a name, for which no program can ask."""
        return self.restorable and bool(self.set or not self.key.startswith("#"))

    @property
    def name(self) -> str:
        """Its set and key, as messages give them."""
        return f"`{self.set}` `{self.key}`" if self.set else f"`{self.key}`"
