"""From the sections of a process to the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from foundry.archive.columns import decode_allocations, decode_bodies, decode_groups
from foundry.archive.dependencies import decode_dependencies
from foundry.archive.layout import Kind
from foundry.archive.parallel import beside
from foundry.archive.parameters import decode_parameters, parameter_words
from foundry.archive.process_text import decode_process
from foundry.archive.relocations import decode_relocations
from foundry.archive.streams import SHORT, Stream
from foundry.archive.text import ContentError, decode
from foundry.model import Process
from foundry.model.checks import check_process, check_proven, check_topology, row_counts
from foundry.model.tables import frozen
from foundry.model.unsound import UnsoundError
from foundry.model.views import kernel_ids_of, parameter_sizes_of


def decode_sections(
    raw: Mapping[Kind, bytes], parameters: Stream | int, spent: dict[str, int], blob_sizes: Sequence[int]
) -> Process:
    """Decode and check the sections of `layout.OWNED`, without the parameters.

    Of the parameters the size is enough; they are zeros then. `spent` is the process's part of the timeline.
    """
    try:
        return _decode(raw, parameters, spent, blob_sizes)
    except UnsoundError as error:
        raise ContentError(str(error)) from None
    finally:
        # Last, and in place of any other error: what was decoded from a damaged section tells nothing.
        if isinstance(parameters, Stream):
            parameters.finish()


def _decode(
    raw: Mapping[Kind, bytes], parameters: Stream | int, spent: dict[str, int], sizes: Sequence[int]
) -> Process:
    groups = decode_groups(raw[Kind.GROUPS])
    tables: dict[str, Any] = decode_bodies(raw[Kind.BODIES])
    check_topology(groups, tables["bodies"], row_counts(tables))
    kernels, blocks = kernel_ids_of(groups, tables["bodies"]), parameter_sizes_of(groups, tables["bodies"])
    words = parameter_words(blocks, parameters if isinstance(parameters, int) else parameters.size)
    decoded = None
    if isinstance(parameters, Stream):
        stream = parameters
        decoded = beside(lambda: decode_parameters(stream, kernels, blocks), small=stream.size < SHORT)
    try:
        if Kind.DEPENDENCIES in raw:
            groups = decode_dependencies(raw[Kind.DEPENDENCIES], groups)
        tables |= {"groups": groups, "spent": spent, "parameters": frozen(np.zeros(words, "<u8")).view(np.uint8)}
        tables["allocations"] = decode_allocations(raw[Kind.ALLOCATIONS])
        process = decode_process(decode(raw[Kind.PROCESS]), tables)
        proof = decode_relocations(raw[Kind.RELOCATIONS]) if Kind.RELOCATIONS in raw else None
        check_process(process, sizes)
    finally:
        found = decoded() if decoded else None
    if found is not None:
        process = replace(process, parameters=found)
    if proof is not None:
        process = replace(process, proof=proof)
        check_proven(process)
    return process
