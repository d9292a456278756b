"""Which pointers are read as such by their launches. What no launch reads may be left over, and point anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from foundry.machine import reads_of
from foundry.model import NodeType, Process
from foundry.model.moving import Index
from foundry.model.reads import may_be_address
from foundry.model.tables import Table
from foundry.model.views import rows

if TYPE_CHECKING:
    from foundry.archive.opened import Opened

Mask = npt.NDArray[np.bool_]


def sure_pointers(process: Process, table: Table, opened: Opened) -> Mask:
    """Tell which words of what `find_pointers` gives are read, as far as the archive has the code.

    Of a launch whose code is elsewhere, nobody knows.
    """
    kernel = table["type"] == NodeType.KERNEL
    numbers = rows_of(process, NodeType.KERNEL, table[kernel])
    reads = reads_of(process, opened.held_blob, np.unique(numbers))
    sure = np.ones(len(table), np.bool_)
    sure[kernel] = may_be_address(reads.at(numbers, table["offset"][kernel].astype(np.int64))) & ~reads.absent[numbers]
    return sure


def rows_of(process: Process, kind: NodeType, part: Table) -> Index:
    """Give the row that each node owns."""
    each = [np.flatnonzero(rows(group, kind)) for group in process.groups]
    owners = [each[group] + (body << 32) for body, group in enumerate(process.bodies.tolist())]
    joined = np.concatenate([np.zeros(0, np.int64), *owners])
    wanted = (part["body"].astype(np.int64) << 32) + part["node"].astype(np.int64)
    found: Index = np.searchsorted(joined, wanted)
    return found
