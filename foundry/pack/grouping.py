"""Groups graphs by exact topology and lays the members' own values out in tables."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from foundry.model import NONE, Group, NodeType
from foundry.model.tables import LAUNCH, MEMSET, Bytes, Table, Words, frozen
from foundry.pack.bodies import ResolvedBody
from foundry.spool.blocks import joined


@dataclass(slots=True)
class Grouping:
    """Collects bodies. A child's group always has a lower index than its parent's; bodies are in pre-order."""

    groups: list[Group] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    _index: dict[tuple[bytes, ...], int] = field(default_factory=dict)
    _emitted: list[ResolvedBody] = field(default_factory=list)
    _pending: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, body: ResolvedBody) -> int:
        """Add a graph's body and return the index of its top body."""
        self._name_children(body)
        return self._emit(body)

    def _name_children(self, body: ResolvedBody) -> int:
        numbers = [self._name_children(child) for child in body.children]
        nodes = body.nodes
        nodes["child"][(nodes["type"] == NodeType.GRAPH) & (nodes["reason"] == NONE)] = numbers
        number = self._index.setdefault(_key(body), len(self.groups))
        if number == len(self.groups):
            self.groups.append(Group(frozen(nodes), frozen(body.edges), body.order))
        return number

    def _emit(self, body: ResolvedBody) -> int:
        index = len(self.bodies)
        self.bodies.append(self._index[_key(body)])
        self._emitted.append(body)
        self._pending.append(())
        self._pending[index] = tuple(self._emit(child) for child in body.children)
        return index

    def body_table(self) -> Words:
        """Give the group of each body."""
        return _words(self.bodies)

    def child_table(self) -> Words:
        """Give the body of each GRAPH node, in the order of bodies and nodes."""
        return _words([child for children in self._pending for child in children])

    def launches(self) -> Table:
        """Lay out the launch dimensions."""
        return frozen(np.frombuffer(b"".join(body.launches for body in self._emitted), LAUNCH))

    def parameters(self) -> Bytes:
        """Lay out the parameter blocks, and drop those of the bodies: they are most of what a capture holds."""
        laid_out = joined([body.parameters for body in self._emitted])
        for body in self._emitted:
            body.parameters = memoryview(b"")
        return laid_out

    def memsets(self) -> Table:
        """Lay out the memsets."""
        return frozen(np.concatenate([np.zeros(0, MEMSET), *(body.memsets for body in self._emitted)]))

    def copies(self) -> Bytes:
        """Lay out the copies."""
        return frozen(np.frombuffer(b"".join(body.copies for body in self._emitted), np.uint8))

    def event_nodes(self) -> list[int]:
        """Give the event of each event node."""
        return [number for body in self._emitted for number in body.events]


def _key(body: ResolvedBody) -> tuple[bytes, ...]:
    return body.nodes.tobytes(), body.edges.tobytes(), body.order.tobytes()


def _words(values: list[int]) -> npt.NDArray[np.uint32]:
    array = np.array(values, np.uint32)
    array.setflags(write=False)
    return array
