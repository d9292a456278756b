"""The report of an archive as one HTML file: nothing beside it is needed to read it."""

from __future__ import annotations

from foundry.page.assemble import render

__all__ = ["render"]
