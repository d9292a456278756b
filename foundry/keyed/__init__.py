"""Graphs by key in a running program: replayed, updated in place, or captured, and compared with eager passes."""

from foundry.keyed.cache import KeyedGraphs
from foundry.keyed.counts import Counts, Done
from foundry.keyed.parity import Round
from foundry.keyed.report import Report

__all__ = ["Counts", "Done", "KeyedGraphs", "Report", "Round"]
