"""What `foundry capture --prove` does with two captures of one command: compares them and keeps what that proves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from foundry import env
from foundry.errors import NotProvenError
from foundry.session import product
from foundry.session.product import Product
from foundry.session.words import count

if TYPE_CHECKING:
    from foundry.findings import Finding
    from foundry.model import Capture, Range
    from foundry.proof import Outcome


@dataclass(frozen=True)
class Packed:
    """A capture in memory, with what a proof needs of it besides."""

    capture: Capture
    findings: list[Finding]
    ranges: dict[str, tuple[Range, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Proven:
    """How a proof went. `problem` is there unless every graph that a restore builds is proven."""

    product: Product
    outcome: Outcome
    problem: NotProvenError | None

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"proven: {self.outcome.proven} of {count(self.outcome.graphs, 'graph')}, "
            f"{count(self.outcome.moving, 'word')} move with their memory, {self.outcome.noise} are noise"
        )

    def as_dict(self) -> dict[str, int]:
        """For machines."""
        found = self.outcome
        return {"graphs": found.graphs, "proven": found.proven, "words": found.moving, "noise": found.noise}


def elsewhere(environment: Mapping[str, str], first: Capture, *, simulated: bool) -> dict[str, str]:
    """Make the environment of the second run: no memory where the first had it, and on the simulator other handles."""
    bases = sorted({device.base for process in first.processes for device in process.devices if device.base})
    result = {**environment, env.AVOID: ",".join(f"{base:x}" for base in bases)}
    seed = environment.get(env.SIMULATOR_SEED, "")
    if simulated and seed.isdigit():
        result[env.SIMULATOR_SEED] = str(int(seed) + 1)
    return result


def compare(first: Packed, second: Packed, written: Product) -> Proven:
    """Compare the two, and write the archive anew with what that proved."""
    from foundry.proof import prove

    outcome = prove(first.capture, second.capture, (first.ranges, second.ranges))
    findings = [*first.findings, *outcome.findings]
    capture = replace(outcome.capture, findings=tuple(findings))
    made = product.write(capture, findings, written.path, force=True)
    problem = None
    if outcome.proven < outcome.graphs:
        why = next((f"{finding.where}: {finding.text}" for finding in outcome.findings), "no reason is known")
        problem = NotProvenError(
            f"{outcome.graphs - outcome.proven} of {count(outcome.graphs, 'graph')} not proven: {why}",
            hint=f"`foundry inspect {written.path} --findings` lists all reasons; the archive is written",
        )
    return Proven(made, outcome, problem)
