"""Kernels and their images as documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foundry.describe import names, values
from foundry.describe.documents import ImageRow, KernelRow
from foundry.describe.graphs import kernel_name
from foundry.model import NONE, NodeType, Process
from foundry.model.restorable import graph_ends
from foundry.model.views import rows


def kernels(process: Process) -> list[KernelRow]:
    """List the kernels of a process with how often its graphs use them."""
    uses, graphs = _uses(process)
    return [
        KernelRow(
            process=process.role,
            **kernel_name(index, kernel.name),
            image=None if kernel.image == NONE else kernel.image,
            device=kernel.device,
            uses=uses[index],
            graphs=graphs[index],
            parameter_bytes=kernel.parameter_bytes,
            parameters=[list(pair) for pair in kernel.parameters],
            attributes=values.function_attributes(kernel.attributes),
        )
        for index, kernel in enumerate(process.kernels)
    ]


def _uses(process: Process) -> tuple[list[int], list[int]]:
    count = len(process.kernels)
    each = []
    for group in process.groups:
        used = group.nodes["kernel"][rows(group, NodeType.KERNEL)]
        each.append(np.bincount(used[used != NONE], minlength=count))
    uses, graphs = np.zeros(count, np.int64), np.zeros(count, np.int64)
    bodies = process.bodies.tolist()
    for graph, end in zip(process.graphs, graph_ends(process), strict=True):
        total = np.zeros(count, np.int64)
        for group_index in bodies[graph.body : end]:
            total += each[group_index]
        uses += total
        graphs += total > 0
    return uses.tolist(), graphs.tolist()


def images(process: Process, blob_sizes: Sequence[int]) -> list[ImageRow]:
    """List the kernel images of a process. `blob_sizes` are those of the archive."""
    held = [0] * len(process.images)
    for kernel in process.kernels:
        if kernel.image != NONE:
            held[kernel.image] += 1
    return [
        ImageRow(
            process=process.role,
            index=index,
            key=image.key.hex(),
            instance=image.instance,
            api=names.name(names.APIS, image.api),
            format=names.name(names.FORMATS, image.format),
            blob=None if image.blob == NONE else image.blob,
            original=None if image.original == NONE else image.original,
            size=image.size,
            stored_bytes=None if image.loaded == NONE else blob_sizes[image.loaded],
            unpacked=image.unpacked,
            in_graphs=image.in_graphs,
            provenance=image.provenance,
            build_id=image.build_id,
            offset=image.offset,
            kernels=held[index],
        )
        for index, image in enumerate(process.images)
    ]
