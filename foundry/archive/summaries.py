"""What an archive says about itself without being unpacked: its table of contents and its summary section."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SectionSummary:
    """A section as the table of contents lists it.

    `kind` is its name in the registry or `#<number>`; `process` the process that it belongs to, None if to the whole.
    """

    kind: str
    process: int | None
    offset: int
    stored: int
    raw: int
    critical: bool
    digest: str


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """A GPU of a process."""

    ordinal: int
    name: str
    compute_major: int
    compute_minor: int
    multiprocessors: int
    total_memory: int
    mig: bool


@dataclass(frozen=True, slots=True)
class ArenaSummary:
    """An arena of a device: how many allocations were made in it and how many bytes they had, all and at the end."""

    device: int
    arena: int
    allocations: int
    bytes: int
    live: int
    live_bytes: int


@dataclass(frozen=True, slots=True)
class CodeSummary:
    """How often the findings of one code and severity were told."""

    code: str
    severity: str
    count: int


@dataclass(frozen=True, slots=True)
class ProcessSummary:
    """A process in numbers. `sets` counts the graphs of each labelled set.

    `proof` has, where a second capture proved any of it, the number of proven `graphs`, of `words` that move with their
    memory, and of words that are `noise`.
    """

    role: str
    executable: str
    ranks: dict[str, str]
    driver_version: int
    driver_library: str
    simulated: bool
    devices: tuple[DeviceSummary, ...]
    graphs: int
    restorable: int
    groups: int
    nodes: int
    kernels: int
    images: int
    allocations: int
    arenas: tuple[ArenaSummary, ...]
    sets: dict[str, int]
    proof: dict[str, int]


@dataclass(frozen=True, slots=True)
class Summary:
    """An archive in brief. Sizes are bytes; `findings` counts by severity name, `codes` by code too.

    `outside` counts the blobs that lie in library files instead.
    """

    capture_id: str
    major: int
    minor: int
    file_size: int
    raw_size: int
    sections: tuple[SectionSummary, ...]
    context: dict[str, str]
    packages: dict[str, str]
    processes: tuple[ProcessSummary, ...]
    files: int
    findings: dict[str, int]
    codes: tuple[CodeSummary, ...]
    outside: int

    @property
    def thin(self) -> bool:
        """Whether it needs library files of the machine."""
        return self.outside > 0

    @property
    def proof_id(self) -> str:
        """Names what the capture id does not cover and an image follows: what a second capture proved, and orders.

        Empty if there is no such thing.
        """
        kinds = "relocations", "dependencies"
        return "".join(section.digest[:16] for section in self.sections if section.kind in kinds)

    @property
    def graphs(self) -> int:
        """Graphs in all processes."""
        return sum(process.graphs for process in self.processes)
