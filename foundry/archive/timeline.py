"""The timeline section: what took how long. It differs in each run, so it is no part of what a capture is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foundry.archive.text import ContentError, Fields, widened

if TYPE_CHECKING:
    from foundry.model import Capture


def encode_timeline(capture: Capture) -> dict[str, Any]:
    """Make the JSON object of a capture's times."""
    return {
        "processes": [
            {"spent": {name: widened(value) for name, value in process.spent.items()}} for process in capture.processes
        ]
    }


def decode_timeline(fields: Fields, processes: int) -> tuple[dict[str, int], ...]:
    """Read the times of each process."""
    found = fields.objects("processes", lambda item: item.integers("spent"))
    if len(found) != processes:
        raise ContentError(f"the timeline is of {len(found)} processes, the capture has {processes}")
    return found
