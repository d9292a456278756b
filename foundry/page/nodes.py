"""The nodes of a process's graphs as kinds: short kernel names and node types, with counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.model import NONE, NodeType, Process
from foundry.page.names import LONGEST, family
from foundry.page.palette import Palette

_TYPES = {
    NodeType.MEMCPY: "copy",
    NodeType.MEMSET: "fill",
    NodeType.HOST: "host function",
    NodeType.GRAPH: "child graph",
    NodeType.EMPTY: "empty node",
    NodeType.WAIT_EVENT: "event wait",
    NodeType.EVENT_RECORD: "event record",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a node is. Nodes with the same `family` share a colour, `variant` tells members of a family apart."""

    label: str
    family: str
    variant: int


class Nodes:
    """Kinds of nodes of a process, each with a number, and for each group the numbers of its nodes."""

    def __init__(self, process: Process) -> None:
        self.kinds: list[Kind] = []
        self._process = process
        self._numbers: dict[tuple[int, int], int] = {}
        self._variants: Counter[str] = Counter()
        self.of_group = [self._number_all(group.nodes) for group in process.groups]
        self._uses_of_group = np.bincount(process.bodies, minlength=len(process.groups))
        uses: Counter[str] = Counter()
        for times, numbers in zip(self._uses_of_group.tolist(), self.of_group, strict=True):
            for number, count in enumerate(np.bincount(numbers, minlength=0).tolist()):
                if count and times:
                    uses[self.kinds[number].family] += count * times
        self.palette = Palette(uses)

    def _number_all(self, nodes: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        kernel = np.where(nodes["type"] == NodeType.KERNEL, nodes["kernel"], NONE).astype(np.int64)
        pairs = nodes["type"].astype(np.int64) << 32 | kernel
        distinct, back = np.unique(pairs, return_inverse=True)
        numbers = [self._number(pair >> 32, pair & 0xFFFFFFFF) for pair in distinct.tolist()]
        return np.array(numbers, np.int64)[back.reshape(-1)] if numbers else np.zeros(0, np.int64)

    def _number(self, kind: int, kernel: int) -> int:
        if (kind, kernel) not in self._numbers:
            name = self._process.kernels[kernel].name if kernel != NONE else ""
            of = family(name) if name else _type_name(kind)
            self._numbers[kind, kernel] = len(self.kinds)
            self.kinds.append(Kind(_label(name, of), of, self._variants[of]))
            self._variants[of] += 1
        return self._numbers[kind, kernel]

    def family(self, kernel: int) -> str:
        """Name the kind of a kernel of the process."""
        return family(self._process.kernels[kernel].name) or _type_name(NodeType.KERNEL)

    def pixels(self) -> npt.NDArray[np.uint8]:
        """Give the pixel value of each kind."""
        return np.array([self.palette.pixel(kind.family, kind.variant) for kind in self.kinds], np.uint8)


def _label(name: str, of: str) -> str:
    return name if name and len(name) <= LONGEST and not name.startswith("_Z") else of


def _type_name(kind: int) -> str:
    if kind == NodeType.KERNEL:
        return "unknown kernel"
    if kind in NodeType._value2member_map_:
        known = NodeType(kind)
        return _TYPES.get(known, known.name.lower().replace("_", " "))
    return f"node of type {kind}"
