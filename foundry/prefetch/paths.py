"""Paths below the home folder, which another user has elsewhere and nobody needs to know."""

from __future__ import annotations

from collections.abc import Mapping


def shortened(path: str, home: str) -> str:
    """Write `~` for the home folder."""
    home = home.rstrip("/")
    return f"~{path[len(home) :]}" if home.startswith("/") and path.startswith(f"{home}/") else path


def lengthened(path: str, environment: Mapping[str, str]) -> str | None:
    """Write the home folder for `~`; None if there is none."""
    if not path.startswith("~/"):
        return path
    home = environment.get("HOME", "").rstrip("/")
    return f"{home}{path[1:]}" if home.startswith("/") else None
