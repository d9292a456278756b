"""Names of vLLM's graphs: what tells one from another within a start, and nothing that changes between starts."""

from __future__ import annotations

from typing import Any

FULL = "full"
PIECES = "pieces"


def name_of(mode: Any) -> str:
    """Name the set of a runtime mode."""
    return FULL if mode.name == "FULL" else PIECES


def of_execution(batch: Any) -> str:
    """Name a `BatchExecutionDescriptor` of the V2 runner."""
    parts = [f"{batch.num_tokens} tokens"]
    if batch.num_reqs is not None:
        parts.append(f"{batch.num_reqs} requests")
    if batch.uniform_token_count is not None:
        parts.append(f"{batch.uniform_token_count} each")
    return " ".join(parts)


def of_batch(batch: Any) -> str:
    """Name a `BatchDescriptor`, which the pieces and the V1 runner are keyed by."""
    parts = [f"{batch.num_tokens} tokens"]
    if batch.num_reqs is not None:
        parts.append(f"{batch.num_reqs} requests")
    if batch.uniform:
        parts.append("uniform")
    return " ".join(parts)
