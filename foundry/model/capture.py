"""The roots: a capture of one command, and each process in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from foundry.findings import Finding
from foundry.model.files import File, Library, LibraryPlace, StartFile
from foundry.model.graphs import Graph, Group
from foundry.model.kernels import Image, Kernel
from foundry.model.memory import Contents, Context, Device, Phase, Range
from foundry.model.proof import Proof
from foundry.model.tables import ByContent, Bytes, Table, Words


@dataclass(frozen=True, slots=True, eq=False)
class Process(ByContent):
    """One process of the command, found again on a restore by its role.

    A graph's nodes stand in bodies. A body is one instance of a group: `bodies[b]` is the group's index, and
    `children` gives the body of each GRAPH node. Bodies are in pre-order, so that the k-th KERNEL node over all bodies
    in order owns row k of `launches` and block k of `parameters`; likewise MEMSET, MEMCPY and the two event kinds.
    `complete` tells whether the spool had an orderly end, `committed` the step of the last commit (NONE = none).
    `spent` is nanoseconds by name: times differ in each run, so an archive does not count them as content.
    `proof` is what a second capture told of the addresses in it, None if there was none or it could not be compared.
    """

    role: str
    executable: str
    mode: int
    ranks: dict[str, str]
    driver_version: int
    driver_library: str
    simulated: bool
    complete: bool
    committed: int
    devices: tuple[Device, ...]
    contexts: tuple[Context, ...]
    allocations: Table
    ranges: tuple[Range, ...]
    contents: tuple[Contents, ...]
    images: tuple[Image, ...]
    kernels: tuple[Kernel, ...]
    attribute_sets: tuple[tuple[tuple[int, bytes], ...], ...]
    node_reasons: tuple[str, ...]
    groups: tuple[Group, ...]
    graphs: tuple[Graph, ...]
    bodies: Words
    children: Words
    launches: Table
    parameters: Bytes
    memsets: Table
    copies: Bytes
    event_nodes: Words
    events: tuple[int, ...]
    phases: tuple[Phase, ...]
    counters: dict[str, int]
    spent: dict[str, int]
    libraries: tuple[Library, ...] = ()
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """All that an archive holds. `context` is what the session knows: argv, versions, allow-listed environment.

    `packages` are the versions of Python distributions, by name. `outside` are the blobs, by index, whose bytes an
    archive leaves out because they lie in a library file; a capture in memory has the bytes of all. `start_files` are
    the files that the command read until it was ready, in that order: a hint, which is no part of what a capture is.
    """

    processes: tuple[Process, ...]
    blobs: tuple[bytes, ...]
    context: dict[str, str] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    findings: tuple[Finding, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)
    outside: dict[int, LibraryPlace] = field(default_factory=dict)
    start_files: tuple[StartFile, ...] = ()

    def process(self, role: str) -> Process | None:
        """Find the process of that role."""
        return next((process for process in self.processes if process.role == role), None)
