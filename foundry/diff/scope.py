"""Which fields of the model are compared, by `compare` and by `examine`, and why the others are not."""

from __future__ import annotations

from foundry.diff.report import Kind
from foundry.model import (
    Capture,
    Contents,
    Context,
    Device,
    File,
    Graph,
    Group,
    Image,
    Kernel,
    Library,
    Phase,
    Process,
    Range,
)

COMPARED: dict[type, tuple[str, ...]] = {
    Capture: ("processes", "blobs"),
    Process: (
        *("role", "driver_version", "simulated", "devices", "contexts", "images", "kernels", "graphs"),
        # What makes up the nodes, and the allocations that graphs refer to.
        *("attribute_sets", "node_reasons", "groups", "bodies", "children", "launches", "parameters"),
        *("memsets", "copies", "event_nodes", "events", "allocations"),
    ),
    Device: ("ordinal", "name", "compute_major", "compute_minor", "multiprocessors", "base", "arena_size"),
    Context: ("device", "primary", "ordinal"),
    Image: ("key", "instance", "api", "context", "options", "blob", "original"),
    Kernel: ("image", "name", "device", "parameters", "attributes"),
    Graph: (
        *("set", "key", "metadata", "body", "device", "context"),
        *("instantiate_flags", "references", "reason_code"),
    ),
}
"""The fields that `compare` follows, by class. An image counts where a graph uses it."""

NOT_COMPARED: dict[type, dict[str, str]] = {
    Capture: {
        "context": "how the command was called, and in what environment: `compat` judges that",
        "files": "caches that make a start faster, not other",
        "start_files": "reading them ahead makes a start faster, not other",
        "findings": "told about a run; what stands against a graph is in its reason",
        "packages": "versions of what was installed: `compat` judges that",
        "outside": "where an archive finds the bytes, which are the same",
    },
    Process: {
        "executable": "how the program was called; its role finds it",
        "mode": "a restore records, too",
        "ranks": "part of the role where they count",
        "driver_library": "the same driver has other names in other places",
        "complete": "how the process ended, after all graphs were made",
        "committed": "steps count allocations, and a restore skips those of warm-ups",
        "ranges": "memory of the driver's; a graph that points there has a reason",
        "contents": "what memory held when the program was ready: its data, not its graphs",
        "phases": "a restore skips them",
        "counters": "what a run did, not what it made",
        "spent": "times differ in each run",
        "libraries": "files that were loaded, whether graphs use them or not; the code of kernels is compared",
        "proof": "what is known of the graphs, not what they are",
    },
    Device: {
        "uuid": "another device of the same model does as well",
        "total_memory": "graphs need theirs, whatever there is",
        "flags": "what the driver offers, not what was used",
    },
    Context: {},
    Image: {
        "format": "the form in which the program handed the code over; what is loaded is compared",
        "size": "of the form in which it was handed over",
        "unpacked": "whether the code was taken out of a fatbin, or was handed over without one",
        "in_graphs": "the others are left out",
        "provenance": "the same code lies elsewhere in other installations",
        "build_id": "of the file that the code came from",
        "offset": "in the file that the code came from",
    },
    Kernel: {},
    Graph: {
        "step": "steps count allocations, and a restore skips those of warm-ups",
        "captured": "the restore engine builds what the program captured",
        "first_use": "the order in which a restore builds, not what",
        "dangling_words": "words that look like addresses of memory that is gone",
        "reason": "words for the code, with numbers of allocations",
    },
}
"""The other fields, each with the reason."""

KINDS: dict[type, dict[str, Kind]] = {
    Capture: {
        "processes": Kind.PROCESSES,
        "context": Kind.FINGERPRINT,
        "packages": Kind.FINGERPRINT,
        "blobs": Kind.KERNELS,
        "files": Kind.NOTES,
        "findings": Kind.NOTES,
        "outside": Kind.NOTES,
    },
    Process: {
        "role": Kind.PROCESSES,
        **dict.fromkeys(
            (
                *("executable", "ranks", "driver_version", "driver_library", "simulated", "devices", "contexts"),
                "libraries",
            ),
            Kind.FINGERPRINT,
        ),
        **dict.fromkeys(("allocations", "ranges", "contents", "phases"), Kind.MEMORY),
        **dict.fromkeys(("images", "kernels"), Kind.KERNELS),
        **dict.fromkeys(("groups", "bodies", "children"), Kind.TOPOLOGIES),
        "graphs": Kind.GRAPHS,
        **dict.fromkeys(
            ("node_reasons", "launches", "parameters", "memsets", "copies", "event_nodes", "events"), Kind.NODES
        ),
        "attribute_sets": Kind.EDGES,
        **dict.fromkeys(("mode", "complete", "committed", "counters", "proof"), Kind.NOTES),
    },
    Device: {
        **dict.fromkeys(
            ("ordinal", "name", "compute_major", "compute_minor", "multiprocessors", "total_memory", "flags"),
            Kind.FINGERPRINT,
        ),
        **dict.fromkeys(("base", "arena_size"), Kind.MEMORY),
        "uuid": Kind.NOTES,
    },
    Context: dict.fromkeys(("device", "primary", "ordinal"), Kind.FINGERPRINT),
    Image: {
        **dict.fromkeys(
            ("key", "instance", "api", "context", "options", "blob", "original", "format", "in_graphs"), Kind.KERNELS
        ),
        **dict.fromkeys(("size", "unpacked", "provenance", "build_id", "offset"), Kind.NOTES),
    },
    Kernel: {
        **dict.fromkeys(("image", "name", "device", "parameters"), Kind.KERNELS),
        "attributes": Kind.EDGES,
    },
    Graph: {
        **dict.fromkeys(
            (
                *("set", "key", "metadata", "device", "context", "instantiate_flags", "references"),
                "reason_code",
            ),
            Kind.GRAPHS,
        ),
        "body": Kind.TOPOLOGIES,
        **dict.fromkeys(("step", "captured", "first_use", "dangling_words", "reason"), Kind.NOTES),
    },
    Range: dict.fromkeys(("kind", "address", "size", "image", "name", "born", "died"), Kind.MEMORY),
    Contents: dict.fromkeys(("address", "size", "blob"), Kind.MEMORY),
    Phase: dict.fromkeys(("kind", "name", "begin", "end"), Kind.MEMORY),
    Group: {"nodes": Kind.TOPOLOGIES, "edges": Kind.EDGES, "order": Kind.NOTES},
    Library: dict.fromkeys(("name", "build_id", "package", "version"), Kind.FINGERPRINT),
    File: dict.fromkeys(("cache", "path", "mode", "blob"), Kind.NOTES),
}
"""Where `examine` tells of each field that changed. NOTES weigh nothing: such captures are equal."""

NOT_TOLD: dict[type, dict[str, str]] = {
    Capture: {"start_files": "what a start reads differs from run to run; no part of the capture id"},
    Process: {"spent": "times differ in each run; no part of the capture id"},
}
