"""From the five sections of a process to the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foundry.archive.columns import decode_allocations, decode_bodies, decode_groups
from foundry.archive.parameters import decode_parameters
from foundry.archive.process_text import decode_process
from foundry.archive.relocations import decode_relocations
from foundry.archive.text import ContentError, decode
from foundry.model import Process
from foundry.model.checks import check_process, check_topology, row_counts
from foundry.model.unsound import UnsoundError
from foundry.model.views import kernel_ids_of, parameter_sizes_of


def decode_sections(
    raw: Sequence[bytes | int],
    spent: dict[str, int],
    blob_sizes: Sequence[int],
    relocations: bytes | None = None,
) -> Process:
    """Decode and check the sections of `layout.OF_PROCESS`, in that order, with the process's part of the timeline.

    Of the parameters the size is enough; they are zeros then.
    """
    try:
        process = _decode(raw, spent)
        if relocations is not None:
            process = replace(process, proof=decode_relocations(relocations))
        check_process(process, blob_sizes)
        return process
    except UnsoundError as error:
        raise ContentError(str(error)) from None


def _decode(raw: Sequence[Any], spent: dict[str, int]) -> Process:
    text, allocations, topology, bodies, parameters = raw
    groups = decode_groups(topology)
    tables: dict[str, Any] = decode_bodies(bodies)
    check_topology(groups, tables["bodies"], row_counts(tables))
    kernels, sizes = kernel_ids_of(groups, tables["bodies"]), parameter_sizes_of(groups, tables["bodies"])
    tables["groups"], tables["spent"] = groups, spent
    tables["allocations"] = decode_allocations(allocations)
    tables["parameters"] = decode_parameters(parameters, kernels, sizes)
    return decode_process(decode(text), tables)
