"""Where results lie: `<question>-<class of machine>.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measuring import machine

BENCHMARKS = Path(__file__).resolve().parents[1]
KEPT = BENCHMARKS / "results"
ROOT = BENCHMARKS.parent
NEW = ROOT / "build" / "bench"
"""Where a run writes that is to be compared only."""


def file_name(question: str, facts: Mapping[str, Any]) -> str:
    """Name the file of a question's result on this machine."""
    return f"{question}-{machine.kind(dict(facts))}.json"


def write(folder: Path, question: str, result: Mapping[str, Any]) -> Path:
    """Write a result and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(question, result["machine"])
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> dict[str, Any] | None:
    """Read a result, None if there is none."""
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result
