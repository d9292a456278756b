"""Is an archive sound: from the footer alone up to every kernel, pointer and edge in it."""

from __future__ import annotations

from foundry.verify.levels import verify
from foundry.verify.report import Level, Place, Problem, Report

__all__ = ["Level", "Place", "Problem", "Report", "verify"]
