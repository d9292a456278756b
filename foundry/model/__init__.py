"""What a capture is: frozen dataclasses and numpy tables."""

from __future__ import annotations

from foundry.findings import Finding, Severity
from foundry.model.capture import Capture, File, Library, LibraryPlace, Process
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
]
