"""Puts the sections of a restore image together and writes the file."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foundry.errors import DiskFullError, FoundryError
from foundry.image import layout
from foundry.image.graphs import Bodies, Records, Topology, graph_table
from foundry.image.kernels import Blobs, Kernels
from foundry.image.memory import Mapping, devices, log, mappings, references
from foundry.image.moves import moves
from foundry.image.strings import Strings
from foundry.model import NONE, Capture, Process
from foundry.model.checksum import crc32c
from foundry.model.tables import Table

BLOCKED = "graphs_blocked_ns"
"""Total of the time that a program spent on warm-ups and captures, as its adapter counts it."""


def build_image(capture: Capture, role: str, path: Path, capture_id: bytes) -> None:
    """Build the image of a process and put it in place as a whole."""
    process = capture.process(role)
    if process is None:
        raise KeyError(role)
    _put(path, _file_parts(process, _sections(process, capture.blobs), capture_id))


def _sections(process: Process, blobs: tuple[bytes, ...]) -> dict[str, npt.NDArray[Any]]:
    strings, store = Strings(), Blobs()
    strings.add(process.role)
    restored = [graph for graph in process.graphs if graph.restored]
    bodies = Bodies(process, restored)
    kernels = Kernels(process, bodies.kernels, blobs, store, strings)
    topology = Topology(process, bodies, kernels.kernel_index)
    records = Records(process, bodies)
    history = log(process, strings)
    held = references(process, restored, history.needed)
    graphs, reference_list = graph_table(process, topology, records, held.index, strings)
    mapped = _mapping_table(mappings(process, restored, blobs), store)
    blob_table, blob_bytes = store.packed()
    sections: dict[str, npt.NDArray[Any]] = {
        "devices": devices(process, strings),
        "log": history.table,
        "allocations": held.table,
        "mappings": mapped,
        "blobs": blob_table,
        "blob_bytes": blob_bytes,
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
    return sections


def _mapping_table(found: list[Mapping], store: Blobs) -> Table:
    table = np.zeros(len(found), layout.MAPPING)
    for row, mapping in zip(table, found, strict=True):
        row["address"], row["size"] = mapping.start, mapping.end - mapping.start
        row["device"], row["contents"] = mapping.device, NONE
        if mapping.contents is not None:
            row["contents"], row["contents_offset"] = store.add(mapping.contents), mapping.contents_offset
    return table


def _file_parts(process: Process, sections: dict[str, npt.NDArray[Any]], capture_id: bytes) -> list[Any]:
    """Lay header and sections out in the order of the file, with the filling between them."""
    header = np.zeros(1, layout.HEADER)
    at = layout.HEADER.itemsize
    parts: list[Any] = [header]
    for index, (name, dtype) in enumerate(layout.SECTIONS):
        data = np.ascontiguousarray(sections[name]).view(np.uint8).reshape(-1)
        alignment = layout.BLOB_ALIGNMENT if name == "blob_bytes" else layout.SECTION_ALIGNMENT
        fill = -at % alignment
        entry = header["sections"][0, index]
        entry["offset"], entry["count"] = at + fill, len(data) // dtype.itemsize
        entry["entry_size"], entry["crc32c"] = dtype.itemsize, 0 if name == "blob_bytes" else crc32c(data)
        parts += [bytes(fill), data]
        at += fill + len(data)
    header["magic"], header["abi"], header["section_count"] = layout.MAGIC, layout.ABI, len(layout.SECTIONS)
    header["file_size"], header["capture_id"] = at, np.frombuffer(capture_id, np.uint8)
    header["driver_version"], header["simulated"] = process.driver_version, process.simulated
    header["role"] = 1 if process.role else 0
    header["captured_nanoseconds"] = process.spent.get(BLOCKED, 0)
    header["crc32c"] = crc32c(header.tobytes())
    parts[0] = header.tobytes()
    return parts


def _put(path: Path, parts: list[Any]) -> None:
    try:
        handle, name = tempfile.mkstemp(prefix=".foundry-", suffix=".partial", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                for part in parts:
                    file.write(part)
            Path(name).replace(path)
        finally:
            with suppress(FileNotFoundError):
                Path(name).unlink()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            needed = sum(len(part) for part in parts)
            text = f"cannot write the restore image `{path}`: the file system is full; {needed} bytes are needed"
            raise DiskFullError(text, hint="make room in the cache folder, or set `XDG_CACHE_HOME`") from None
        raise FoundryError(f"cannot write the restore image `{path}`: {error.strerror}") from None
