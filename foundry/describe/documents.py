"""The documents that describe a capture: JSON types only. `cli/JSON.md` says what each key means.

Addresses and words of 8 bytes are strings like `0x400000000000`; sizes and counts are integers, in bytes.
"""

from __future__ import annotations

from typing import Any, TypedDict


class TargetKind(TypedDict):
    """The keys that every target has."""

    kind: str
    text: str


class Target(TargetKind, total=False):
    """What a word points to, or that it points to nothing that is known.

    `kind`: allocation, dangling (in an arena, but in nothing that stood), range (memory that Foundry did not place),
    unknown (a device address of a memset or copy that nothing is known about), noise (looks like a host address),
    constant, unread (the code of the kernel shows that this launch does not read it). `text` says all of it for people.
    An allocation and a dangling word have `device` and `arena`; an allocation has its row in the memory document as
    `allocation`, its `ordinal` in the arena, the `offset` of the word in it and its `size`; a range its kind as
    `range`, its `name`, `offset` and `size`.
    """

    device: int
    arena: str
    allocation: int
    ordinal: int
    offset: int
    size: int
    range: str
    name: str


class Word(TypedDict):
    """An aligned word of 8 bytes of a parameter block, or the part of one that belongs to a parameter."""

    offset: int
    size: int
    value: str
    target: Target


class Parameter(TypedDict):
    """A parameter of a kernel: where it lies in the block, and its words. `index` is None for bytes between."""

    index: int | None
    offset: int
    size: int
    words: list[Word]


class Attribute(TypedDict):
    """An attribute of a launch or function. `value` is a number, text, or an object of them; `bytes` as recorded."""

    number: int
    name: str
    value: Any
    bytes: str


class Memset(TypedDict):
    """A memset node's parameters."""

    destination: str
    target: Target
    pitch: int
    width: int
    height: int
    value: int
    element_size: int


class CopySide(TypedDict):
    """One side of a copy. `address` is None where it is no device or unified memory."""

    memory: str
    address: str | None
    target: Target | None
    x: int
    y: int
    z: int
    level: int
    pitch: int
    height: int


class Copy(TypedDict):
    """A memcpy node's parameters: width in bytes, height in rows, depth in layers."""

    source: CopySide
    destination: CopySide
    width: int
    height: int
    depth: int


class Edge(TypedDict):
    """An edge between two nodes of a body. The default is type `default` and both ports 0."""

    start: int
    end: int
    type: str
    from_port: int
    to_port: int
    data: str


class KernelName(TypedDict):
    """A kernel as a node names it: `name` as the driver has it, `readable` for people, `short` without arguments."""

    index: int
    name: str
    readable: str
    short: str


class Node(TypedDict):
    """A node. What does not belong to its type is None. `child` is the number of a body of the same graph."""

    index: int
    type: str
    reason: str
    kernel: KernelName | None
    grid: list[int] | None
    block: list[int] | None
    shared_bytes: int | None
    attributes: list[Attribute]
    parameters: list[Parameter] | None
    memset: Memset | None
    copy: Copy | None
    event: int | None
    child: int | None


class Body(TypedDict):
    """The nodes of a graph or of a child graph in it. Number 0 is the top; the others name the node they are in."""

    number: int
    parent_body: int | None
    parent_node: int | None
    group: int
    nodes: list[Node]
    edges: list[Edge]


class GraphRow(TypedDict):
    """A graph in a list."""

    process: str
    set: str
    key: str
    index: int
    group: int
    group_members: int
    nodes: int
    edges: int
    bodies: int
    device: int
    restorable: bool
    restored: bool
    reason_code: str
    reason: str
    first_use: int | None
    references: int
    referenced_bytes: int


class Graph(GraphRow):
    """A graph in full."""

    metadata: str
    step: int
    captured: bool
    instantiate_flags: list[str]
    context: str
    dangling_words: int
    allocations: list[int]
    contents: list[Body]


class Allocation(TypedDict):
    """An allocation. `offset` is within its arena; `died` is None if it stood at the end; `graphs` refer to it."""

    index: int
    device: int
    arena: str
    ordinal: int
    address: str
    offset: int
    size: int
    taken: int
    origin: str
    born: int
    died: int | None
    graphs: int


class ArenaUse(TypedDict):
    """An arena of a device in numbers.

    `bytes` counts what stood at the end, `all_bytes` what was ever made; `end` is the highest offset in use;
    `graph_bytes` what graphs refer to.
    """

    device: int
    arena: str
    address: str
    capacity: int
    allocations: int
    live: int
    bytes: int
    all_bytes: int
    end: int
    graph_allocations: int
    graph_bytes: int


class RangeUse(TypedDict):
    """Memory that Foundry did not place. `address` is None where it was not kept."""

    index: int
    kind: str
    name: str
    address: str | None
    size: int
    born: int
    died: int | None


class Memory(TypedDict):
    """The memory of a process."""

    process: str
    arenas: list[ArenaUse]
    allocations: list[Allocation]
    ranges: list[RangeUse]
    contents: list[dict[str, Any]]


class KernelRow(TypedDict):
    """A kernel. `uses` counts nodes, `graphs` the graphs that they are in."""

    process: str
    index: int
    name: str
    readable: str
    short: str
    image: int | None
    device: int
    uses: int
    graphs: int
    parameter_bytes: int
    parameters: list[list[int]]
    attributes: list[Attribute]


class ImageRow(TypedDict):
    """A kernel image. A restore loads `original` where there is one, else `blob`; `stored_bytes` is the size of that.

    Where both are None nothing can be loaded.
    """

    process: str
    index: int
    key: str
    instance: int
    api: str
    format: str
    blob: int | None
    original: int | None
    size: int
    stored_bytes: int | None
    unpacked: bool
    in_graphs: bool
    provenance: str
    build_id: str
    offset: int
    kernels: int
