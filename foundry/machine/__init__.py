"""What the machine code of a kernel does with its parameters."""

from __future__ import annotations

from foundry.machine.process import reads_of

__all__ = ["reads_of"]
