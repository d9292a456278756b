"""Changes the parameters in an archive: a constant, as a fault might; or what no kernel reads."""

from __future__ import annotations

from dataclasses import replace

import numpy

from foundry.machine import reads_of
from foundry.model import Capture
from foundry.model.constants import NodeType
from foundry.model.reads import WORD
from foundry.model.tables import padded_sizes, starts
from foundry.model.views import GraphView, parameter_sizes, rows


def with_constant(capture: Capture, key: str, kernel: str, old: bytes, new: bytes) -> Capture:
    """Replace the last place of `old` in the parameters of the last node of such a kernel in the graph of that key."""
    (process,) = capture.processes
    (graph,) = (graph for graph in process.graphs if graph.key == key)
    before = [
        int(rows(process.groups[group], NodeType.KERNEL).sum()) for group in process.bodies[: graph.body].tolist()
    ]
    first = sum(before)
    nodes = [node for node in GraphView(process).graph_nodes(graph) if node.parameters is not None]
    found = [
        (index, node.parameters.rindex(old))
        for index, node in enumerate(nodes)
        if node.kernel and kernel in node.kernel.name and node.parameters and old in node.parameters
    ]
    names = sorted({node.kernel.name for node in nodes if node.kernel})
    assert found, f"graph {key} has no kernel `{kernel}` with the bytes {old.hex()}, but {names}"
    index, offset = found[-1]
    at = int(starts(padded_sizes(parameter_sizes(process)))[first + index]) + offset
    parameters = process.parameters.copy()
    assert parameters[at : at + len(old)].tobytes() == old
    parameters[at : at + len(old)] = numpy.frombuffer(new, numpy.uint8)
    return replace(capture, processes=(replace(process, parameters=parameters),))


def with_other_leftovers(capture: Capture) -> tuple[Capture, int]:
    """Put other numbers into all bytes of parameters that no kernel reads, by its code; tell how many bytes."""
    (process,) = capture.processes
    reads = reads_of(process, lambda at: capture.blobs[at])
    sizes = padded_sizes(parameter_sizes(process))
    words = sizes // WORD
    row = numpy.repeat(numpy.arange(len(sizes)), words)
    offset = (numpy.arange(len(row)) - numpy.repeat(numpy.cumsum(words) - words, words)) * WORD
    unread = ~reads.at(row, offset)
    noise = numpy.random.default_rng(7).integers(0, 1 << 64, len(row), numpy.uint64, endpoint=False)
    held = process.parameters.view("<u8")
    changed = (held & ~unread | noise & unread).view("u1")
    count = int(numpy.count_nonzero(unread.view("u1")))
    return replace(capture, processes=(replace(process, parameters=changed),)), count


def without_proof(capture: Capture) -> Capture:
    """Take the proof away, which names words that are changed here."""
    return replace(capture, processes=tuple(replace(process, proof=None) for process in capture.processes))
