"""What must hold for a graph before a restore may try: everything that its nodes name is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.findings import (
    DEVICE_UNKNOWN,
    KERNEL_UNKNOWN,
    NODE_UNSUPPORTED,
    PARAMETER_LAYOUT,
    SCRATCH_MEMORY,
)
from foundry.model.capture import Process
from foundry.model.constants import NONE, Arena, NodeType
from foundry.model.graphs import Graph, Group
from foundry.model.kernels import SHORTEST_IMAGE
from foundry.model.views import rows

BUILT_TYPES = (
    NodeType.KERNEL,
    NodeType.MEMCPY,
    NodeType.MEMSET,
    NodeType.GRAPH,
    NodeType.EMPTY,
    NodeType.WAIT_EVENT,
    NodeType.EVENT_RECORD,
)
"""Node types that a restore can build."""
_BUILT = np.array(sorted(BUILT_TYPES), np.uint32)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a graph cannot be restored: a finding code, a text, the node as a path of indices through child graphs."""

    code: str
    text: str
    path: tuple[int, ...] = ()

    def sentence(self) -> str:
        """Word it, with the node in front."""
        return f"node {' > '.join(map(str, self.path))}: {self.text}" if self.path else self.text


class Restorable:
    """Judges the graphs of a process. Pointers are judged elsewhere, except that no reference may be scratch memory."""

    def __init__(self, process: Process, blob_sizes: Sequence[int]) -> None:
        self._process = process
        usable = [
            image.loaded != NONE and blob_sizes[image.loaded] >= SHORTEST_IMAGE and image.api in (1, 2)
            for image in process.images
        ]
        kernels = process.kernels
        # One entry more than there are kernels: that of nodes whose kernel is not known.
        self._known = np.array(
            [*(kernel.image != NONE and usable[kernel.image] and bool(kernel.name) for kernel in kernels), False]
        )
        self._sound = np.array([*(kernel.sound_layout for kernel in kernels), False])
        self._bytes = np.array([*(kernel.parameter_bytes for kernel in kernels), 0], np.int64)
        self._device = np.array([*(kernel.device for kernel in kernels), NONE], np.uint32)
        self._ordinals = {device.ordinal for device in process.devices if device.arena_size}
        self._bodies = process.bodies.tolist()
        self._judged: dict[tuple[int, int], Problem | None] = {}
        self._scratch = process.allocations["arena"] == Arena.SCRATCH

    def problem(self, graph: Graph, end: int) -> Problem | None:
        """Find what stands against a graph whose bodies are those from its top one up to `end`."""
        if graph.device not in self._ordinals:
            return Problem(DEVICE_UNKNOWN, f"its device {graph.device} has no reserved range")
        for body in range(graph.body, end):
            place = (self._bodies[body], graph.device)
            if place not in self._judged:
                self._judged[place] = self._judge(self._process.groups[place[0]], graph.device)
            found = self._judged[place]
            if found is not None:
                return found
        if graph.references and self._scratch[list(graph.references)].any():
            return Problem(SCRATCH_MEMORY, "it refers to scratch memory")
        return None

    def _judge(self, group: Group, device: int) -> Problem | None:
        nodes = group.nodes
        refused = (nodes["reason"] != NONE) | ~np.isin(nodes["type"], _BUILT)
        if refused.any():
            return _at(refused, NODE_UNSUPPORTED, "a restore cannot build its kind")
        kernel = rows(group, NodeType.KERNEL)
        which = np.minimum(nodes["kernel"], len(self._known) - 1)
        for bad, code, text in (
            (~self._known[which], KERNEL_UNKNOWN, "the image of its kernel is not known"),
            (~self._sound[which], PARAMETER_LAYOUT, "the parameter layout of its kernel is not known"),
            (
                self._bytes[which] != nodes["parameter_size"],
                PARAMETER_LAYOUT,
                "its parameters have another size than its kernel takes",
            ),
            (self._device[which] != device, KERNEL_UNKNOWN, "its kernel is of another device"),
        ):
            if (bad & kernel).any():
                return _at(bad & kernel, code, text)
        return None


def _at(mask: npt.NDArray[np.bool_], code: str, text: str) -> Problem:
    return Problem(code, text, (int(np.flatnonzero(mask)[0]),))


def graph_ends(process: Process) -> list[int]:
    """Give, for each graph, the end of the stretch of bodies that starts with its top one."""
    tops = [graph.body for graph in process.graphs]
    return [*tops[1:], len(process.bodies)] if tops else []
