"""Whole outputs, as they were last agreed on. `UPDATE_SNAPSHOTS=1` writes them anew; read the difference first."""

from __future__ import annotations

import os
from pathlib import Path

SNAPSHOTS = Path(__file__).parents[1] / "cli" / "snapshots"


def check(name: str, text: str) -> None:
    """Compare a text with the snapshot of that name."""
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert text == path.read_text()
