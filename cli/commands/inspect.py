"""`foundry inspect`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from foundry.errors import ArchiveNotFoundError

from ..options import READ_CODES, Archive, Json
from ..render import command_line, driver_version, print_json, print_pairs, print_table

if TYPE_CHECKING:
    from foundry.archive import ProcessSummary, Summary

NAME = "inspect"
SHORT = "Tell what is in an archive."
EXIT_CODES = READ_CODES


def command(context: typer.Context, archive: Archive, json: Json = False) -> None:
    """Tell what is in an archive. Needs no GPU and unpacks nothing."""
    summary = read(archive)
    if json:
        print_json(dataclasses.asdict(summary))
    else:
        show(archive, summary)


def read(path: Path) -> Summary:
    """Read an archive's summary; ArchiveNotFoundError if there is no such file."""
    from foundry import archive

    if not path.exists():
        raise ArchiveNotFoundError(f"no archive at `{path}`", hint="`foundry list` shows those in the store")
    return archive.summary(path)


def show(path: Path, summary: Summary) -> None:
    """Print a summary for people."""
    from foundry.session.product import readable_size

    simulated = any(process.simulated for process in summary.processes)
    print_pairs(
        [
            ("archive", str(path)),
            ("format", f"{summary.major}.{summary.minor}"),
            ("capture", summary.capture_id),
            ("command", command_line(summary.context)),
            ("size", f"{readable_size(summary.file_size)}, {readable_size(summary.raw_size)} unpacked"),
            ("simulated", "yes" if simulated else "no"),
            ("findings", _findings(summary.findings)),
        ]
    )
    for process in summary.processes:
        print()
        _show_process(process)
    print()
    print_table(
        [("section", "left"), ("stored", "right"), ("unpacked", "right")],
        [(section.kind, readable_size(section.stored), readable_size(section.raw)) for section in summary.sections],
    )


def _show_process(process: ProcessSummary) -> None:
    from foundry.session.product import count

    devices = ", ".join(
        f"{device.name} (compute {device.compute_major}.{device.compute_minor})" for device in process.devices
    )
    ranks = ", ".join(f"{name}={value}" for name, value in sorted(process.ranks.items()))
    sets = ", ".join(f"{name or '(unlabelled)'} {number}" for name, number in sorted(process.sets.items()))
    topologies = count(process.groups, "topology", "topologies")
    pairs = [
        ("process", process.role),
        ("program", process.executable),
        ("ranks", ranks),
        ("GPU", devices),
        ("driver", f"CUDA {driver_version(process.driver_version)}" + (", simulated" if process.simulated else "")),
        ("graphs", f"{process.graphs}, {process.restorable} restorable, {topologies}"),
        ("sets", sets),
        ("nodes", str(process.nodes)),
        ("kernels", f"{process.kernels} in {count(process.images, 'image')}"),
        ("allocations", str(process.allocations)),
    ]
    print_pairs([(name, value) for name, value in pairs if value])


def _findings(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()) if number) or "none"
