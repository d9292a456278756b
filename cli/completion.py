"""What a shell offers for an archive when the user presses the tab key."""

from __future__ import annotations

from pathlib import Path

SUFFIX = ".fdry"
DEEPEST = 8


def archive_names(incomplete: str) -> list[str]:
    """List archives, and folders to look further in, whose paths begin so; empty where none does."""
    start = incomplete.rpartition("/")[2]
    prefix = incomplete[: len(incomplete) - len(start)]
    for _ in range(DEEPEST):
        found = _entries(prefix, start)
        if len(found) != 1 or not found[0].endswith("/"):
            return found
        # Offered alone, a shell would take the folder for the whole argument.
        prefix, start = found[0], ""
    return found


def allowable_codes(incomplete: str) -> list[str]:
    """List the codes that `--allow` takes and that begin so."""
    from foundry.compat.codes import RULES, allowable

    return sorted(code for code in RULES if code.startswith(incomplete) and allowable(code))


def _entries(prefix: str, start: str) -> list[str]:
    try:
        entries = list(Path(prefix or ".").expanduser().iterdir())
    except (OSError, RuntimeError):
        return []
    names = []
    for entry in entries:
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        if entry.is_dir():
            names.append(f"{prefix}{entry.name}/")
        elif entry.name.endswith(SUFFIX):
            names.append(f"{prefix}{entry.name}")
    return sorted(names)
