"""One start of an engine in this process: whether it is captured or restored, and what was pinned for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from foundry.capi import Hook, Mode
from foundry.engines import notes
from foundry.engines.passes import Pass
from foundry.engines.protocol import disabled, tell
from foundry.graphs import difference
from foundry.torch import memory
from foundry.torch.random_state import generator_state

LAYOUT = "torch_layout"


class Start:
    """Made before the engine allocates what its graphs point to. `active` turns false for good once refused.

    `engine` begins the names of its notes: what was pinned before and after there was a KV cache, and what the end
    showed. `title` is what lines for people call it.
    """

    def __init__(self, hook: Hook, engine: str, title: str, pins: Mapping[str, Any]) -> None:
        self.hook, self.engine, self.title = hook, engine, title
        self.mode = hook.mode()
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.pins = dict(pins)
        self.note = notes.kept(hook, self.begin_note) if self.mode is Mode.RESTORE else None
        self.end = notes.kept(hook, self.end_note) if self.mode is Mode.RESTORE else None
        self.current: Pass | None = None
        self.active = True
        # What torch keeps for random numbers in graphs is allocated with the first capture, which a restore skips.
        generator_state(self.device)

    @property
    def begin_note(self) -> str:
        """The note of what was pinned, and of what a restore takes from the capture."""
        return f"{self.engine}/start"

    @property
    def ground_note(self) -> str:
        """The note of what was there when the first graph was captured."""
        return f"{self.engine}/ground"

    @property
    def end_note(self) -> str:
        """The note of what the end of the warm-up showed."""
        return f"{self.engine}/end"

    def objection(self, unfit: str | None) -> str | None:
        """Say why this start must be left alone, or None. `unfit`: a feature that the adapter does not do."""
        if self.engine in disabled:
            return disabled[self.engine]
        if unfit is not None:
            return f"{unfit} is not done yet"
        unsupported = memory.unsupported()
        if unsupported is not None or self.mode is not Mode.RESTORE:
            return unsupported
        if self.note is None:
            return f"the archive has no start of {self.title} for this process"
        if self.end is None:
            return "the capture did not get to the end of the warm-up"
        return other(self.note["pins"], self.pins)

    def refuse(self, reason: str) -> None:
        """Leave this start alone from here on: it warms up and captures as always."""
        self.active = False
        if self.mode is Mode.RESTORE:
            notes.give_up(self.hook, self.begin_note, reason)
        tell(self.engine, f"graphs are captured as always: {reason}")

    def lay(self, found: Mapping[str, Any], *, random_numbers: bool = False) -> Pass | None:
        """Begin the pass over the engine's graphs on a ground that must be the capture's; None if it was refused."""
        recorded = (notes.kept(self.hook, self.ground_note) or {}) if self.restores else {}
        reason = other(recorded, found) if self.restores else None
        if reason is not None:
            self.refuse(reason)
            return None
        pins = {**self.pins, **found}
        expected = recorded.get(LAYOUT)
        made = Pass(self.hook, self.engine, self.device, pins, random_numbers=random_numbers, expected=expected)
        if self.captures:
            notes.keep(self.hook, self.ground_note, {**found, LAYOUT: made.layout})
        self.current = made
        return made

    def settle(self) -> dict[str, str]:
        """Settle torch's allocator, before there is a KV cache, and return what `begin_note` must tell of that."""
        expected = self.note.get(LAYOUT) if self.restores and self.note else None
        return {LAYOUT: memory.settle_as(self.device, self.hook.range_base(self.device.index), expected)}

    @property
    def captures(self) -> bool:
        """Whether what happens now is to be stored."""
        return self.active and self.mode is Mode.CAPTURE

    @property
    def restores(self) -> bool:
        """Whether what happens now is to be answered."""
        return self.active and self.mode is Mode.RESTORE


def line(error: Exception) -> str:
    """Word a fault of an adapter, which must not become one of the engine."""
    return f"{type(error).__name__}: {(str(error) or 'no reason given').splitlines()[0]}"


def other(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Say which setting is not the capture's, by name; None if all are."""
    for name, value in found.items():
        reason = difference(recorded.get(name), value, name)
        if reason is not None:
            return f"another {reason}"
    return None
