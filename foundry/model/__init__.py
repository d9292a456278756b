"""What a capture is: frozen dataclasses and numpy tables.

The names are imported when they are first asked for: what only reads the head of an archive then does without numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foundry.findings import Finding, Severity
    from foundry.model.capture import Capture, Process
    from foundry.model.constants import (
        HOST_RANGES,
        NONE,
        Api,
        Arena,
        DeviceFlag,
        Format,
        NodeType,
        Origin,
        PhaseKind,
        RangeKind,
    )
    from foundry.model.files import File, Library, LibraryPlace, StartFile
    from foundry.model.graphs import Graph, Group
    from foundry.model.kernels import Image, Kernel
    from foundry.model.memory import Contents, Context, Device, Phase, Range
    from foundry.model.proof import Proof

__all__ = [
    "HOST_RANGES",
    "NONE",
    "Api",
    "Arena",
    "Capture",
    "Contents",
    "Context",
    "Device",
    "DeviceFlag",
    "File",
    "Finding",
    "Format",
    "Graph",
    "Group",
    "Image",
    "Kernel",
    "Library",
    "LibraryPlace",
    "NodeType",
    "Origin",
    "Phase",
    "PhaseKind",
    "Process",
    "Proof",
    "Range",
    "RangeKind",
    "Severity",
    "StartFile",
]

_PLACES = {
    "foundry.findings": ("Finding", "Severity"),
    "foundry.model.capture": ("Capture", "Process"),
    "foundry.model.files": ("File", "Library", "LibraryPlace", "StartFile"),
    "foundry.model.graphs": ("Graph", "Group"),
    "foundry.model.kernels": ("Image", "Kernel"),
    "foundry.model.memory": ("Contents", "Context", "Device", "Phase", "Range"),
    "foundry.model.proof": ("Proof",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_PLACE_OF.get(name, "foundry.model.constants")), name)
    globals()[name] = value
    return value
