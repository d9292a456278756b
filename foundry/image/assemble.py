"""Puts the sections of a restore image together and writes the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foundry.image import layout
from foundry.image.blobs import Blobs
from foundry.image.graphs import Bodies, Records, Topology, graph_table
from foundry.image.kernels import Kernels
from foundry.image.memory import Mapping, devices, log, mappings, references
from foundry.image.moves import moves
from foundry.image.output import Output
from foundry.image.strings import Strings
from foundry.model import NONE, Capture, Process
from foundry.model.checksum import crc32c
from foundry.model.tables import Table

BLOB_BYTES = "blob_bytes"
BLOCKED = "graphs_blocked_ns"
"""Total of the time that a program spent on warm-ups and captures, as its adapter counts it."""


def build_image(capture: Capture, role: str, path: Path, capture_id: bytes, *, trim: bool) -> None:
    """Build the image of a process and put it in place as a whole."""
    process = capture.process(role)
    if process is None:
        raise KeyError(role)
    store = Blobs()
    sections = _sections(process, capture.blobs, store, trim=trim)
    header, size = _header(process, sections, store.size, capture_id)
    with Output(path, size) as output:
        for entry, (name, data) in zip(header["sections"][0], sections.items(), strict=True):
            offset = int(entry["offset"])
            if name == BLOB_BYTES:
                output.write(offset, *store.pieces())
            else:
                output.write(offset, data)
                entry["crc32c"] = crc32c(data)
        header["crc32c"] = crc32c(header.tobytes())
        output.write(0, header.tobytes())
        output.finish()


def _sections(
    process: Process, blobs: tuple[bytes, ...], store: Blobs, *, trim: bool
) -> dict[str, npt.NDArray[np.uint8]]:
    """Make the bytes of all sections, in the order of the file, but for those of blobs."""
    strings = Strings()
    strings.add(process.role)
    restored = [graph for graph in process.graphs if graph.restored]
    bodies = Bodies(process, restored)
    kernels = Kernels(process, bodies.kernels, blobs, store, strings, trim=trim)
    topology = Topology(process, bodies, kernels.kernel_index)
    records = Records(process, bodies)
    history = log(process, strings)
    held = references(process, restored, history.needed)
    graphs, reference_list = graph_table(process, topology, records, held.index, strings)
    mapped = _mapping_table(mappings(process, restored, blobs), store)
    sections: dict[str, npt.NDArray[Any]] = {
        "devices": devices(process, strings),
        "log": history.table,
        "allocations": held.table,
        "mappings": mapped,
        "blobs": store.table(),
        BLOB_BYTES: np.zeros(0, np.uint8),
        "images": kernels.images,
        "image_options": kernels.options,
        "kernels": kernels.kernels,
        "parameters": kernels.parameters,
        "attributes": kernels.attributes,
        "groups": topology.groups,
        "nodes": topology.nodes,
        "edges": topology.edges,
        "node_attributes": topology.node_attributes,
        "graphs": graphs,
        "records": records.records,
        "parameter_bytes": records.parameter_bytes,
        "copies": records.copies,
        "references": reference_list,
        "events": np.array(process.events, np.uint32),
        "moves": moves(process, bodies, records, strings),
    }
    sections["strings"] = np.frombuffer(strings.packed(), np.uint8)
    return {name: np.ascontiguousarray(sections[name]).view(np.uint8).reshape(-1) for name, _ in layout.SECTIONS}


def _mapping_table(found: list[Mapping], store: Blobs) -> Table:
    table = np.zeros(len(found), layout.MAPPING)
    for row, mapping in zip(table, found, strict=True):
        row["address"], row["size"] = mapping.start, mapping.end - mapping.start
        row["device"], row["contents"] = mapping.device, NONE
        if mapping.contents is not None:
            row["contents"], row["contents_offset"] = store.add(mapping.contents), mapping.contents_offset
    return table


def _header(
    process: Process, sections: dict[str, npt.NDArray[np.uint8]], blob_bytes: int, capture_id: bytes
) -> tuple[npt.NDArray[Any], int]:
    """Lay the sections out in the order of the file, and give its header, without checksums, and its size."""
    header = np.zeros(1, layout.HEADER)
    at = layout.HEADER.itemsize
    for entry, (name, dtype) in zip(header["sections"][0], layout.SECTIONS, strict=True):
        at += -at % (layout.BLOB_ALIGNMENT if name == BLOB_BYTES else layout.SECTION_ALIGNMENT)
        size = blob_bytes if name == BLOB_BYTES else len(sections[name])
        entry["offset"], entry["count"], entry["entry_size"] = at, size // dtype.itemsize, dtype.itemsize
        at += size
    header["magic"], header["abi"], header["section_count"] = layout.MAGIC, layout.ABI, len(layout.SECTIONS)
    header["file_size"], header["capture_id"] = at, np.frombuffer(capture_id, np.uint8)
    header["driver_version"], header["simulated"] = process.driver_version, process.simulated
    header["role"] = 1 if process.role else 0
    header["captured_nanoseconds"] = process.spent.get(BLOCKED, 0)
    return header, at
