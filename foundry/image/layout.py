"""The structs of `native/abi/image_format.h` as numpy dtypes, and the sections in their order."""

from __future__ import annotations

import numpy as np

MAGIC = b"FDRYIMG1"
ABI = 7
"""FOUNDRY_ABI."""
SECTION_ALIGNMENT = 16
BLOB_ALIGNMENT = 4096
MAPPING_ALIGNMENT = 2 << 20

SECTION = np.dtype([("offset", "<u8"), ("count", "<u8"), ("entry_size", "<u4"), ("crc32c", "<u4")])

DEVICE = np.dtype(
    [
        ("ordinal", "<u4"),
        ("name", "<u4"),
        ("compute_major", "<u4"),
        ("compute_minor", "<u4"),
        ("multiprocessors", "<u4"),
        ("flags", "<u4"),
        ("total_memory", "<u8"),
        ("base", "<u8"),
        ("arena_size", "<u8"),
    ]
)
LOG_ENTRY = np.dtype(
    [
        ("address", "<u8"),
        ("size", "<u8"),
        ("device", "<u4"),
        ("thread", "<u2"),
        ("freed", "<u2"),
        ("where", "<u4"),
        ("pad", "<u4"),
    ]
)
ALLOCATION = np.dtype(
    [
        ("address", "<u8"),
        ("size", "<u8"),
        ("device", "<u4"),
        ("arena", "<u4"),
        ("restored", "<u4"),
        ("log_entries", "<u4"),
    ]
)
MAPPING = np.dtype(
    [
        ("address", "<u8"),
        ("size", "<u8"),
        ("device", "<u4"),
        ("contents", "<u4"),
        ("contents_offset", "<u8"),
    ]
)
BLOB = np.dtype([("offset", "<u8"), ("length", "<u8"), ("crc32c", "<u4"), ("pad", "<u4")])
KERNEL_IMAGE = np.dtype(
    [
        ("key", "u1", (32,)),
        ("blob", "<u4"),
        ("api", "<u4"),
        ("instance", "<u4"),
        ("device", "<u4"),
        ("first_option", "<u4"),
        ("option_count", "<u4"),
        ("whole", "<u4"),
        ("provenance", "<u4"),
    ]
)
OPTION = np.dtype([("option", "<u4"), ("pad", "<u4"), ("value", "<u8")])
KERNEL = np.dtype(
    [
        ("image", "<u4"),
        ("name", "<u4"),
        ("first_parameter", "<u4"),
        ("parameter_count", "<u4"),
        ("first_attribute", "<u4"),
        ("attribute_count", "<u4"),
        ("parameter_bytes", "<u4"),
        ("device", "<u4"),
    ]
)
PARAMETER = np.dtype([("offset", "<u4"), ("size", "<u4")])
ATTRIBUTE = np.dtype([("id", "<u4"), ("value", "<i4")])
GROUP = np.dtype([("first_node", "<u4"), ("node_count", "<u4"), ("first_edge", "<u4"), ("edge_count", "<u4")])
NODE = np.dtype(
    [
        ("type", "<u4"),
        ("kernel", "<u4"),
        ("first_attribute", "<u4"),
        ("attribute_count", "<u4"),
        ("child_group", "<u4"),
        ("pad", "<u4"),
    ]
)
EDGE = np.dtype([("from", "<u4"), ("to", "<u4"), ("data", "<u8")])
NODE_ATTRIBUTE = np.dtype([("id", "<u4"), ("pad", "<u4"), ("value", "u1", (64,))])
GRAPH = np.dtype(
    [
        ("group", "<u4"),
        ("set", "<u4"),
        ("key", "<u4"),
        ("metadata", "<u4"),
        ("first_record", "<u8"),
        ("instantiate_flags", "<u8"),
        ("device", "<u4"),
        ("context", "<u4"),
        ("first_reference", "<u4"),
        ("reference_count", "<u4"),
        ("restorable", "<u4"),
        ("reason", "<u4"),
        ("first_use", "<u4"),
        ("moves", "<u4"),
    ]
)
MOVE = np.dtype([("offset", "<u8"), ("section", "<u4"), ("device", "<u4")])
RECORD_SIZE = 64


def _record(fields: list[tuple[str, str, int]]) -> np.dtype[np.void]:
    return np.dtype(
        {
            "names": [name for name, _, _ in fields],
            "formats": [kind for _, kind, _ in fields],
            "offsets": [offset for _, _, offset in fields],
            "itemsize": RECORD_SIZE,
        }
    )


KERNEL_RECORD = _record(
    [
        ("grid", "3<u4", 0),
        ("block", "3<u4", 12),
        ("shared_bytes", "<u4", 24),
        ("parameter_size", "<u4", 28),
        ("parameter_offset", "<u8", 32),
    ]
)
MEMSET_RECORD = _record(
    [
        ("destination", "<u8", 0),
        ("pitch", "<u8", 8),
        ("width", "<u8", 16),
        ("height", "<u8", 24),
        ("value", "<u4", 32),
        ("element_size", "<u4", 36),
    ]
)
COPY_RECORD = _record([("copy", "<u4", 0)])
EVENT_RECORD = _record([("event", "<u4", 0)])
CHILD_RECORD = _record([("first_record", "<u8", 0)])

BYTE = np.dtype("u1")
INDEX = np.dtype("<u4")
COPY = np.dtype(("u1", (200,)))

SECTIONS: tuple[tuple[str, np.dtype[np.generic]], ...] = (
    ("strings", BYTE),
    ("devices", DEVICE),
    ("log", LOG_ENTRY),
    ("allocations", ALLOCATION),
    ("mappings", MAPPING),
    ("blobs", BLOB),
    ("blob_bytes", BYTE),
    ("images", KERNEL_IMAGE),
    ("image_options", OPTION),
    ("kernels", KERNEL),
    ("parameters", PARAMETER),
    ("attributes", ATTRIBUTE),
    ("groups", GROUP),
    ("nodes", NODE),
    ("edges", EDGE),
    ("node_attributes", NODE_ATTRIBUTE),
    ("graphs", GRAPH),
    ("records", np.dtype((np.void, RECORD_SIZE))),
    ("parameter_bytes", BYTE),
    ("copies", np.dtype((np.void, 200))),
    ("references", INDEX),
    ("events", INDEX),
    ("moves", MOVE),
)

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("abi", "<u4"),
        ("section_count", "<u4"),
        ("file_size", "<u8"),
        ("capture_id", "u1", (32,)),
        ("driver_version", "<u4"),
        ("simulated", "<u4"),
        ("role", "<u4"),
        ("crc32c", "<u4"),
        ("captured_nanoseconds", "<u8"),
        ("sections", SECTION, (len(SECTIONS),)),
    ]
)
