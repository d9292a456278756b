"""The report of a restore, as `foundry restore --report FILE` or `--json` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foundry.errors import UsageError

LARGEST = 1 << 26


def read_report(path: Path | None) -> dict[str, Any] | None:
    """Read a report; UsageError if the file is none."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        found = json.loads(data) if len(data) <= LARGEST else None
    except OSError as error:
        raise UsageError(f"cannot read the report `{path}`: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "report" not in found or not isinstance(found.get("processes"), list):
        raise UsageError(
            f"`{path}` is not the report of a restore", hint="`foundry restore --report FILE -- CMD` writes one"
        )
    return found
