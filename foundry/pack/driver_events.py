"""Driver events that graph nodes name, and which graphs a restore may therefore bring back.

A restored graph uses an event of the restore's own. That goes unnoticed only where nobody else can name the event: the
program destroyed it before a graph with it first ran, and every other graph that has it is restored, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from foundry.findings import EVENT_SHARED
from foundry.model import NONE, Graph, NodeType, Process
from foundry.model.restorable import Problem, graph_ends
from foundry.pack.bodies import ResolvedBody


@dataclass(slots=True)
class _State:
    flags: int
    gone: bool = False


class DriverEvents:
    """Numbers the events of a process in order of creation, and knows which of them the program still holds."""

    def __init__(self) -> None:
        self._states: list[_State] = []
        self._numbers: dict[int, int] = {}
        self._late: defaultdict[int, int] = defaultdict(int)

    def created(self, handle: int, flags: int) -> None:
        """Take a new event. A handle that was in use is another's from now on, whose end is told later, or never."""
        before = self._numbers.get(handle)
        if before is not None and not self._states[before].gone:
            self._states[before].gone = True
            self._late[handle] += 1
        self._numbers[handle] = len(self._states)
        self._states.append(_State(flags))

    def destroyed(self, handle: int) -> None:
        """Take the end of an event."""
        if self._late[handle]:
            self._late[handle] -= 1
        elif handle in self._numbers:
            self._states[self._numbers[handle]].gone = True

    def number(self, handle: int) -> int:
        """Give the number of a handle, NONE if it was not seen to be created."""
        return self._numbers.get(handle, NONE)

    def flags(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Give the flags that events were created with."""
        return tuple(self._states[number].flags for number in numbers)

    def problem(self, body: ResolvedBody) -> Problem | None:
        """Find an event of a graph that the program can name, at the time of asking."""
        number = next((one for one in _events_of(body) if one != NONE and not self._states[one].gone), None)
        if number is None:
            return None
        return Problem(EVENT_SHARED, f"the program may use event {number} outside of graphs")


def _events_of(body: ResolvedBody) -> Iterable[int]:
    yield from body.events
    for child in body.children:
        yield from _events_of(child)


def judge(process: Process) -> Process:
    """Give a reason to graphs that wait for, or signal, something outside of the graphs that a restore brings back."""
    if not len(process.event_nodes):
        return process
    graphs = list(process.graphs)
    users, recorders = _users(process)
    for event in sorted(users.keys() - recorders):
        _refuse(graphs, users[event], f"waits for event {event}, which no graph records")
    shared = {event for event, named in users.items() if len(named) > 1}
    while found := [event for event in sorted(shared) if any(_left_out(graphs[at]) for at in users[event])]:
        for event in found:
            first = graphs[next(at for at in sorted(users[event]) if _left_out(graphs[at]))]
            _refuse(graphs, users[event], f"graph {first.name}, which is not restored, uses event {event}, too")
        shared.difference_update(found)
    return replace(process, graphs=tuple(graphs))


def _users(process: Process) -> tuple[dict[int, set[int]], set[int]]:
    """Give the graphs that name each event, and the events that a graph records."""
    users: defaultdict[int, set[int]] = defaultdict(set)
    recorders: set[int] = set()
    row = 0
    for index, (graph, end) in enumerate(zip(process.graphs, graph_ends(process), strict=True)):
        for body in range(graph.body, end):
            nodes = process.groups[int(process.bodies[body])].nodes
            mask = (nodes["reason"] == NONE) & np.isin(nodes["type"], (NodeType.EVENT_RECORD, NodeType.WAIT_EVENT))
            for kind in nodes["type"][mask].tolist():
                event = int(process.event_nodes[row])
                row += 1
                users[event].add(index)
                if kind == NodeType.EVENT_RECORD:
                    recorders.add(event)
    users.pop(NONE, None)
    return users, recorders


def _left_out(graph: Graph) -> bool:
    """Whether a restored program makes this graph by itself: it cannot be restored, or has no name to ask for."""
    return not graph.restorable or not graph.set


def _refuse(graphs: list[Graph], which: Iterable[int], reason: str) -> None:
    for index in which:
        if graphs[index].restorable:
            graphs[index] = replace(graphs[index], reason_code=EVENT_SHARED, reason=reason)
