"""What is asked of a process before a command starts: little of its text, and none of its tables."""

from __future__ import annotations

from dataclasses import dataclass

from foundry.archive.text import LARGEST_WORD, Fields


@dataclass(frozen=True, slots=True)
class Outline:
    """A process in outline.

    `primary`: devices whose primary contexts it had; `origins`: base name and build id of each library file that
    kernel images of its graphs came from.
    """

    role: str
    counters: dict[str, int]
    primary: frozenset[int]
    origins: frozenset[tuple[str, str]]


def decode_outline(fields: Fields) -> Outline:
    """Read it from the JSON object of a process section."""
    contexts = fields.objects("contexts", lambda item: (item.integer("device", LARGEST_WORD), item.truth("primary")))
    images = fields.objects(
        "images", lambda item: (item.text("provenance"), item.text("build_id"), item.truth("in_graphs"))
    )
    return Outline(
        role=fields.text("role"),
        counters=fields.integers("counters"),
        primary=frozenset(device for device, primary in contexts if primary),
        origins=frozenset((name, build) for name, build, in_graphs in images if name and build and in_graphs),
    )
