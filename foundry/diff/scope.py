"""Which fields of the model say something about a restore, and why the others do not."""

from __future__ import annotations

from foundry.model import Capture, Context, Device, Graph, Image, Kernel, Process

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
    Image: ("key", "instance", "api", "context", "options", "blob"),
    Kernel: ("image", "name", "device", "parameters", "attributes"),
    Graph: (
        *("set", "key", "metadata", "body", "device", "context"),
        *("instantiate_flags", "references", "reason_code"),
    ),
}
"""The fields that a comparison follows, by class. An image counts where a graph uses it."""

NOT_COMPARED: dict[type, dict[str, str]] = {
    Capture: {
        "context": "how the command was called, and in what environment: `compat` judges that",
        "files": "caches that make a start faster, not other",
        "findings": "told about a run; what stands against a graph is in its reason",
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
    },
    Device: {
        "uuid": "another device of the same model does as well",
        "total_memory": "graphs need theirs, whatever there is",
        "flags": "what the driver offers, not what was used",
    },
    Context: {},
    Image: {
        "format": "the form in which the program handed the code over; what is loaded is compared",
        "original": "the PTX of code that is compared",
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
