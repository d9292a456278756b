"""Proof by a second capture: which addresses move with their memory."""

from __future__ import annotations

from foundry.proof.proving import Outcome, prove

__all__ = ["Outcome", "prove"]
