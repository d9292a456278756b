"""`foundry verify --device`: has every process of an archive built on a GPU, each in fresh processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import archive
from foundry.compat.codes import SIMULATED
from foundry.errors import MismatchError, MissingPackageError
from foundry.launch import environment as launch_environment
from foundry.verify.device import parent

if TYPE_CHECKING:
    from foundry.archive import Opened


def check_on_device(
    path: Path,
    environment: Mapping[str, str],
    *,
    simulated: bool,
    launching: bool,
    seconds: float,
    step: Callable[[str], None] = lambda _: None,
) -> parent.DeviceReport:
    """Build the graphs of an archive on a GPU and compare what the driver tells of them.

    Raises ArchiveError, MismatchError where the archive is of the simulator and this is a GPU or the other way round,
    and MissingPackageError without cuda-python.
    """
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        raise MissingPackageError(
            "`--device` needs cuda-python, which is not installed",
            hint="`pip install 'foundry-graphs[device]'`, or `pip install cuda-bindings`",
        )
    request = parent.Request(
        archive=path,
        environment=launch_environment.plain(environment, simulated=simulated),
        launching=launching,
        seconds=seconds,
    )
    report = parent.DeviceReport(simulated=simulated)
    with archive.open_archive(path) as opened:
        for number in range(opened.head.processes):
            role, graphs = _graphs(opened, number, simulated)
            if graphs:
                step(f"process `{role}`")
                parent.check_process(request, number, role, graphs, report)
    return report


def _graphs(opened: Opened, number: int, simulated: bool) -> tuple[str, list[tuple[str, str]]]:
    """Give the role and the names of the graphs of a process."""
    process = opened.process(number)
    if process.simulated != simulated and process.graphs:
        kinds = ("a real driver", "the simulator")
        raise MismatchError(
            f"process `{process.role}` was captured on {kinds[process.simulated]}, this is {kinds[simulated]}",
            code=SIMULATED,
            hint="add `--sim`" if process.simulated else "leave out `--sim`",
        )
    return process.role, [(graph.set, graph.key) for graph in process.graphs]
