"""Each test gets a torch of its own, and `foundry.torch` imported on top of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
from helpers import fake_spans
from helpers.fake_hook import FakeHook
from helpers.fake_torch import FakeTorch

from foundry.capi import Mode


@dataclass
class World:
    """A process: its hook, its torch, and `foundry.torch`."""

    hook: FakeHook
    torch: Any
    foundry_torch: ModuleType

    def graph_set(self, name: str = "decode", **options: Any) -> Any:
        return self.foundry_torch.GraphSet(name, hook=self.hook, **options)


Start = Callable[..., World]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process: `start(Mode.CAPTURE)`, or `start(Mode.RESTORE, after=world)` with what that world stored."""
    before = {name: module for name, module in sys.modules.items() if _ours(name)}

    def _start(mode: Mode = Mode.OFF, after: World | None = None, **torch: Any) -> World:
        _forget()
        hook = FakeHook(mode, after.hook.archive if after else None)
        sys.modules["torch"] = fake = FakeTorch(hook, **torch)
        import foundry.torch
        import foundry.torch.spans

        fake_spans.install(fake, foundry.torch.spans)
        return World(hook, fake, foundry.torch)

    yield _start
    _forget()
    sys.modules.update(before)


def _ours(name: str) -> bool:
    return name == "torch" or name.startswith(("torch.", "foundry.torch"))


def _forget() -> None:
    for name in [name for name in sys.modules if _ours(name)]:
        del sys.modules[name]
