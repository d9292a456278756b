"""The reader of spools."""

from __future__ import annotations

from foundry.spool.reader import Entry, Spool, process_folders, read_spool
from foundry.spool.report import RestoreReport, restore_reports

__all__ = ["Entry", "RestoreReport", "Spool", "process_folders", "read_spool", "restore_reports"]
