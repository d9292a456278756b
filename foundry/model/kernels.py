"""Kernel images and the kernels in them."""

from __future__ import annotations

from dataclasses import dataclass

from foundry.model.constants import NONE

SHORTEST_IMAGE = 16
"""Bytes that a kernel image has at least."""
LARGEST_PARAMETERS = 32764
"""Bytes of parameters that a kernel takes at most."""


@dataclass(frozen=True, slots=True)
class Image:
    """One load of a kernel image by the program.

    `blob` is what the program handed to the driver, or the cubin out of it. Archives of earlier versions may have there
    what the driver linked `original` to, which is other code than what it runs; `original` is NONE for all others.
    `key` is the hook's name for what the program handed to the driver; `instance` counts its loads from 0.
    """

    key: bytes
    instance: int
    api: int
    format: int
    blob: int
    original: int
    size: int
    unpacked: bool
    context: int
    options: tuple[tuple[int, int], ...]
    in_graphs: bool
    provenance: str
    build_id: str
    offset: int

    @property
    def linked(self) -> bool:
        """Whether `blob` is linked code, which neither the program nor a restore runs."""
        return self.original != NONE

    @property
    def loaded(self) -> int:
        """The index of the blob that a restore loads."""
        return self.original if self.linked else self.blob


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with its function attributes as they stood when a graph that uses it was made."""

    image: int
    name: str
    device: int
    parameters: tuple[tuple[int, int], ...]
    attributes: tuple[tuple[int, int], ...]

    @property
    def parameter_bytes(self) -> int:
        """End of the last parameter."""
        return max((offset + size for offset, size in self.parameters), default=0)

    @property
    def sound_layout(self) -> bool:
        """Whether the parameters follow one another without overlap."""
        end = 0
        for offset, size in self.parameters:
            if offset < end or not size:
                return False
            end = offset + size
        return end <= LARGEST_PARAMETERS
