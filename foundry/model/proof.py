"""What a second capture, made with all memory elsewhere, proved of the first: where its device addresses stand.

Whoever adds the distance of a device's range to each of these addresses has the graphs as they would have been captured
there. The words that an entry names lie in the range of a device, which tells whose they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foundry.model.tables import ByContent, Table, Words

PLACE = np.dtype(
    [
        ("row", "<u4"),  # of the kernel nodes, the copies, or the graphs
        ("offset", "<u4"),  # byte in the parameter block, the copy, or the metadata in UTF-8
    ]
)
"""Where an address stands. Of metadata it is a decimal number that begins there, of the others 8 bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Proof(ByContent):
    """The graphs that are proven, and all device addresses in them. Each table ascends, without overlap.

    `graphs` are indices of Process.graphs, `memsets` rows whose destination is an address. `noise` counts the words
    that differed between the two captures and are device memory in neither: they are replayed as they were captured.
    """

    graphs: Words
    parameters: Table
    memsets: Words
    copies: Table
    texts: Table
    noise: int

    @property
    def moving(self) -> int:
        """How many words move with their memory."""
        return len(self.parameters) + len(self.memsets) + len(self.copies)
