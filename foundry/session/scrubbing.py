"""What `foundry capture --scrub` does with a proven capture: tries it without its noise, and keeps what that shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from foundry.errors import AbandonedError, FoundryError, NotScrubbedError
from foundry.session import product
from foundry.session.listener import Listener
from foundry.session.product import Product
from foundry.session.proving import Packed, Proven
from foundry.session.words import count, readable_size

if TYPE_CHECKING:
    from foundry.launch import executable as executables
    from foundry.model import Capture, Process
    from foundry.model.reads import Reads
    from foundry.proof.scrub import Outcome
    from foundry.proof.scrub_noise import Noise

NOT_ASKED = "the command did not ask for it when it ran without noise"
NOT_TOLD = "its process did not tell which of its graphs gave the same without noise"
NO_WITNESS = "it has no witness to compare with"
WITHOUT = "without noise: "
ARCHIVE_NAME = "candidate.fdry"
EQUAL = "witness_equal"
DIFFERS = "witness-differs"

GraphName = tuple[str, str, str]
"""Role, set and key."""


@dataclass(frozen=True)
class Answer:
    """What the run without noise told: why graphs are to keep theirs. `failed` is a reason for all of them.

    `final`: less of the noise need not be tried. `handed` are the graphs that the command was given, by role, `equal`
    how many comparisons of each role went well.
    """

    failed: str = ""
    handed: Mapping[str, frozenset[GraphName]] = field(default_factory=dict)
    equal: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[GraphName, str] = field(default_factory=dict)
    final: bool = False


@dataclass(frozen=True)
class Scrubbed:
    """How it went. `problem` is there unless no graph kept noise; `before` is the size with all of it."""

    product: Product
    outcome: Outcome
    before: int
    problem: NotScrubbedError | None

    def line(self) -> str:
        """Say it in one line."""
        found = self.outcome
        return (
            f"scrubbed: {found.clean} of {count(found.graphs, 'graph')}, "
            f"{count(found.zeroed, 'byte')} of noise made zero, {readable_size(self.before)} before"
        )

    def as_dict(self) -> dict[str, int]:
        """For machines."""
        found = self.outcome
        return {
            "graphs": found.graphs,
            "scrubbed": found.clean,
            "bytes": found.zeroed,
            "archive_bytes_before": self.before,
        }


def scrub(proven: Proven, second: Packed, attempt: Callable[[Capture, str], Answer]) -> Scrubbed:
    """Have the command run without noise, and write the archive anew without that which made no difference.

    `attempt` runs the command with the graphs of a capture, and says before what is made zero. It does so a second time
    if graphs gave something else than before, and less of what they hold is noise for certain.
    """
    from foundry import machine
    from foundry.proof import scrub as without
    from foundry.proof import scrub_noise

    capture = proven.outcome.capture

    def reads_of(process: Process) -> Reads:
        return machine.reads_of(process, capture.blobs.__getitem__)

    def masks() -> dict[str, Noise]:
        return {
            process.role: found[process.role].mixed(process, [at for role, at in narrow if role == process.role])
            for process in capture.processes
            if process.role in found
        }

    found = scrub_noise.find(capture, second.capture, reads_of)
    reasons: dict[tuple[str, int], str] = {}
    narrow: set[tuple[str, int]] = set()
    for what in ("what may be noise in its graphs", "the bytes of its graphs that differ between runs"):
        tried = masks()
        if not any(each.graphs for each in tried.values()):
            break
        answer = _attempted(attempt, without.candidate(capture, tried, reads_of), what)
        reasons = judged(capture, answer)
        less = {graph for graph, why in reasons.items() if answer.failed or why.startswith(WITHOUT + DIFFERS)} - narrow
        if answer.final or not any(role in found and found[role].differ(at) for role, at in less):
            break
        narrow |= less
    outcome = without.settle(capture, tried, reasons, reads_of)
    findings = list(outcome.capture.findings)
    made = product.write(outcome.capture, findings, proven.product.path, force=True)
    problem = None
    if outcome.kept:
        (role, at), why = next(iter(outcome.kept.items()))
        graph = next(process for process in capture.processes if process.role == role).graphs[at].name
        problem = NotScrubbedError(
            f"{len(outcome.kept)} of {count(outcome.graphs, 'graph')} kept what may be noise: "
            f"{role}, graph {graph}: {why}",
            hint=f"`foundry inspect {made.path} --findings` lists all reasons; the archive is written",
        )
    return Scrubbed(made, outcome, proven.product.size, problem)


def _attempted(attempt: Callable[[Capture, str], Answer], candidate: Capture, what: str) -> Answer:
    try:
        return attempt(candidate, what)
    except AbandonedError:
        raise
    except Exception as error:
        told = str(error) if isinstance(error, FoundryError) else f"{type(error).__name__}: {error}"
        return Answer(f"the command could not be run without noise: {told}", final=True)


def judged(capture: Capture, answer: Answer) -> dict[tuple[str, int], str]:
    """Say of each graph why it must keep its noise; those that were compared and found equal are left out."""
    reasons = {}
    for process in capture.processes:
        handed = answer.handed.get(process.role, frozenset())
        told = bool(handed) and len(handed) == answer.equal.get(process.role, 0)
        for at, graph in enumerate(process.graphs):
            name = process.role, graph.set, graph.key
            why = answer.failed or answer.reasons.get(name, "")
            if not why and name not in handed:
                why = NOT_ASKED
            if not why and not _has_witness(graph.metadata):
                why = NO_WITNESS
            if why or not told:
                reasons[process.role, at] = why or NOT_TOLD
    return reasons


def _has_witness(metadata: str) -> bool:
    try:
        found = json.loads(metadata)
    except (ValueError, RecursionError):
        return False
    witness = found.get("witness") if isinstance(found, dict) else None
    return isinstance(witness, dict) and "found" in witness


def images_of(
    candidate: Capture,
    folder: Path,
    found: executables.Executable,
    environment: Mapping[str, str],
    listener: Listener,
) -> Path:
    """Make the restore images of a capture in a folder that goes with the session."""
    from foundry import archive
    from foundry.session import images
    from foundry.session.surroundings import Surroundings
    from foundry.store.location import Location

    path = folder / ARCHIVE_NAME
    archive.write(replace(candidate, outside={}), path)
    place = Location(folder / "store", folder / "store")
    return images.folder_for(path, archive.summary(path), place, listener, Surroundings(found, environment))


def answer_of(spool: Path) -> Answer:
    """Read what the hooked processes of the run without noise told."""
    from foundry.spool import restore_reports

    handed: dict[str, frozenset[GraphName]] = {}
    equal: dict[str, int] = {}
    reasons: dict[GraphName, str] = {}
    for process in restore_reports(spool):
        handed[process.role] = frozenset(
            (process.role, graph.set, graph.key) for graph in process.graphs if graph.state == 1
        )
        equal[process.role] = process.counters.get(EQUAL, 0)
        for graph in process.graphs:
            if graph.state != 1:
                reasons[process.role, graph.set, graph.key] = f"{WITHOUT}{graph.reason}"
    return Answer("", handed, equal, reasons)
