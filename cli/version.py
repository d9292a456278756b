"""The version of the installed distribution."""

from __future__ import annotations

DISTRIBUTION = "foundry-graphs"


def version() -> str:
    """Tell the version, or `0+source` where foundry runs from a source tree."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+source"
