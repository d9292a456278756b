"""Makes a witness of a graph, and compares one with what the graph gives."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from foundry import env
from foundry.errors import FoundryError

FORMAT = 1
"""Of the witness. One of another format is not compared."""

LARGEST = 256 << 20
"""Most bytes that are copied to the host for one witness: outputs, what was written, and what is not filled."""

DIFFERS = "witness-differs"
MISSING = "witness-missing"
UNSTEADY = "witness-unsteady"
STATE = "witness-state"
MADE = "witness-made"
EQUAL = "witness-equal"


class UnfitError(Exception):
    """No witness can be made or compared here; the message says why."""


class LostError(Exception):
    """Memory could not be put back after a replay, so the program must not go on as if nothing had been."""


class Subject(Protocol):
    """A graph, and the memory that it reads and writes. Used as `with kept(): put(...); replay()`."""

    def kept(self) -> AbstractContextManager[object]:
        """Leave all of the memory at the end of the block as it was at its begin.

        Raises UnfitError before the block if it cannot, LostError after it if it could not.
        """

    def choose(self) -> Any:
        """Choose what to fill the memory with, as JSON."""

    def put(self, chosen: Any) -> Any:
        """Fill the memory. The answer is JSON, equal only if the state is the same. Raises UnfitError."""

    def replay(self) -> dict[str, str]:
        """Replay the graph and give a digest of each output and of each change, by name. Raises UnfitError."""


@dataclass(frozen=True)
class Verdict:
    """What a comparison found: `code` is None if all is equal."""

    code: str | None
    text: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


def witness_wanted() -> bool:
    """Whether `foundry capture --witness` started this process."""
    return os.environ.get(env.WITNESS) == "1"


def check_wanted() -> bool:
    """Whether `foundry restore --check` started this process."""
    return os.environ.get(env.CHECK) in ("1", env.CHECK_ONLY)


def refuses(verdict: Verdict) -> bool:
    """Whether the graph must not be used: it differs, or only graphs that were found equal may be."""
    return verdict.code == DIFFERS or (verdict.code is not None and os.environ.get(env.CHECK) == env.CHECK_ONLY)


def counter_of(code: str | None) -> str:
    """Name the total of the report that counts outcomes with this code."""
    return (code or EQUAL).replace("-", "_")


def seed_of(*names: str) -> int:
    """Give the seed of a graph: another for each, the same in every run."""
    return int.from_bytes(hashlib.sha256("\0".join(names).encode()).digest()[:6], "little")


def make(subject: Subject) -> dict[str, Any]:
    """Make a witness. Where none can be made, it says why; where two replays differ, it names the first difference."""
    try:
        with subject.kept():
            chosen = subject.choose()
            stated = subject.put(chosen)
            first = subject.replay()
            subject.put(chosen)
            second = subject.replay()
    except (UnfitError, FoundryError, RuntimeError) as error:
        return {"format": FORMAT, "missing": _line(error)}
    if first != second:
        return {"format": FORMAT, "unsteady": _first(first, second)}
    return {"format": FORMAT, "chosen": chosen, "stated": stated, "found": first}


def outcome_of(witness: Mapping[str, Any]) -> Verdict:
    """Say what came of `make`."""
    if "missing" in witness:
        return Verdict(MISSING, str(witness["missing"]))
    if "unsteady" in witness:
        return Verdict(UNSTEADY, f"two replays from the same state differ in {witness['unsteady']}")
    return Verdict(MADE)


def compare(subject: Subject, witness: object) -> Verdict:
    """Replay from the state of the witness and compare."""
    if not isinstance(witness, dict):
        return Verdict(MISSING, "captured without `--witness`")
    if witness.get("format") != FORMAT:
        return Verdict(MISSING, f"its witness has format {witness.get('format')}, this foundry compares {FORMAT}")
    if "missing" in witness or "unsteady" in witness:
        return outcome_of(witness)
    try:
        with subject.kept():
            stated = subject.put(witness.get("chosen"))
            if stated != witness.get("stated"):
                return Verdict(
                    STATE, f"the state differs from the capture's in {_first(witness.get('stated'), stated)}"
                )
            try:
                found = subject.replay()
            except (FoundryError, RuntimeError) as error:
                return Verdict(DIFFERS, f"the replay failed: {_line(error)}")
    except (UnfitError, FoundryError, RuntimeError) as error:
        return Verdict(STATE, f"not compared: {_line(error)}")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        return Verdict(MISSING, f"its witness cannot be read: {type(error).__name__}: {_line(error)}")
    if found != witness.get("found"):
        return Verdict(DIFFERS, f"{_first(witness.get('found'), found)} is not what it was at the capture")
    return Verdict(None)


def _first(one: object, other: object) -> str:
    """Name the first thing that differs."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *other]:
            if one.get(name) != other.get(name):
                inner = _first(one.get(name), other.get(name))
                return inner if isinstance(one.get(name), dict) and isinstance(other.get(name), dict) else str(name)
    return "it"


def _line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
