"""`foundry parity`: runs a command that compares its graphs with eager passes, and gathers what it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from foundry import env
from foundry.errors import FoundryError, NoParityError
from foundry.keyed import report
from foundry.keyed.report import Report
from foundry.launch import environment as launch_environment
from foundry.launch import executable as executables
from foundry.launch.supervisor import Ended, Supervisor
from foundry.session.workspace import Workspace

FILE = "parity"
DIFFERENT_CODE = 1
REFUSED_CODE = 3


@dataclass(frozen=True)
class Outcome:
    """What the command found, and what there is to tell besides."""

    reports: tuple[Report, ...]
    ended: Ended
    simulated: bool
    problem: FoundryError | None

    @property
    def exit_code(self) -> int:
        """The worst of all that was found."""
        verdicts = Counter(one.verdict for one in self.reports)
        if verdicts[report.DIFFERENT]:
            return DIFFERENT_CODE
        return REFUSED_CODE if verdicts[report.REFUSED] or self.problem else 0

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        return {
            "exit_code": self.exit_code,
            "command_exit_code": self.ended.code,
            "simulated": self.simulated,
            "reports": [asdict(one) for one in self.reports],
            "error": str(self.problem) if self.problem else None,
        }


def run(command: Sequence[str], environment: Mapping[str, str], *, simulated: bool) -> Outcome:
    """Run the command to its end. Raises FoundryError if it was not started."""
    found = executables.find(command, environment)
    with Workspace() as workspace, Supervisor(workspace.folder) as supervisor:
        path = workspace.folder / FILE
        child = launch_environment.plain(environment, simulated=simulated)
        child[env.PARITY] = str(path)
        ended = supervisor.run(found, child)
        reports, torn = _read(path)
    return Outcome(reports, ended, simulated, _problem(reports, torn, ended))


def _read(path: Path) -> tuple[tuple[Report, ...], bool]:
    """Read the reports, and tell whether a line is none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return (), False
    found, torn = [], False
    for line in filter(None, lines):
        try:
            found.append(report.parse(line))
        except ValueError:
            torn = True
    return tuple(found), torn


def _problem(reports: tuple[Report, ...], torn: bool, ended: Ended) -> FoundryError | None:
    """Say what there is to say besides the reports. One that differs says all there is."""
    if any(one.verdict == report.DIFFERENT for one in reports):
        return None
    if not reports and not torn:
        how = "" if not ended.code else f" with {_how(ended)}"
        return NoParityError(
            f"the command ended{how} and compared nothing",
            hint="it has to call `foundry.keyed.parity.compare`, or foundry_parity_run in C",
        )
    if torn:
        return NoParityError("a report of the command cannot be read: it was written in part, or by another version")
    if ended.failed and not any(one.verdict == report.REFUSED for one in reports):
        return NoParityError(f"all that was compared is equal, but the command ended with {_how(ended)}")
    return None


def _how(ended: Ended) -> str:
    return f"signal {ended.signal_number}" if ended.signal_number else f"exit code {ended.code}"
