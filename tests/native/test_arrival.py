"""A restore image that is still being made: the hook waits for it, for as long as whoever makes it lives."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from native.restore_build import Outcome
from native.restore_scene import BASE, START, Scene, read_back

from foundry import env

Run = Callable[..., Outcome]

RESTORED = ["wait 0", "launch 0", "read 105 105 105 105"]
SOON = 0.4


class Maker:
    """Who makes the image: holds the lock, and puts the image where it was promised, or where all end up."""

    def __init__(self, folder: Path, kernels: bytes) -> None:
        self.folder = folder / "building"
        self.folder.mkdir()
        self.first = folder / "partial" / "program-0.image"
        self.first.parent.mkdir()
        self.last = folder / "program-0.image"
        (self.folder / self.last.name).symlink_to(self.first)
        self._held = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._held, fcntl.LOCK_EX)
        scene = Scene(kernels)
        scene.add_pair("1", 5)
        made = folder / "made"
        made.mkdir()
        scene.file.write(made)
        self.image = made / "program-0.image"

    def end(self, fault: str = "") -> None:
        if self._held >= 0:
            os.write(self._held, fault.encode())
            os.close(self._held)
            self._held = -1

    def after(self, *actions: Callable[[], object]) -> None:
        """Do this after a while."""
        threading.Timer(SOON, lambda: [action() for action in actions]).start()


@pytest.fixture
def maker(tmp_path: Path, kernels: bytes) -> Iterator[Maker]:
    made = Maker(tmp_path, kernels)
    yield made
    made.end()


def restore(run: Run, maker: Maker, *commands: str, **environment: str) -> tuple[Outcome, float]:
    begin = time.monotonic()
    wanted = commands or (*START, "alloc:4096", *read_back("1"))
    outcome = run(None, *wanted, **{env.BUILDING: str(maker.folder), **environment})
    return outcome, time.monotonic() - begin


def test_one_that_is_there_is_not_waited_for(run: Run, maker: Maker) -> None:
    maker.image.rename(maker.last)
    outcome, _ = restore(run, maker)
    assert outcome.lines == [f"alloc {BASE:#x}", *RESTORED]


@pytest.mark.parametrize("where", ["first", "last"])
def test_it_is_taken_as_soon_as_it_is_there_while_others_are_being_made(run: Run, maker: Maker, where: str) -> None:
    maker.after(lambda: maker.image.rename(getattr(maker, where)))
    outcome, seconds = restore(run, maker)
    assert outcome.lines == [f"alloc {BASE:#x}", *RESTORED]
    assert SOON / 2 < seconds < 10


def test_one_that_is_damaged_is_waited_for_until_it_is_replaced(run: Run, maker: Maker) -> None:
    maker.last.write_bytes(maker.image.read_bytes()[:-1])
    maker.after(lambda: maker.image.rename(maker.last), maker.end)
    outcome, _ = restore(run, maker)
    assert outcome.lines == [f"alloc {BASE:#x}", *RESTORED]


@pytest.mark.parametrize("fault", ["disk-full: the disk is full", ""])
def test_an_end_without_it_is_a_plain_start_that_says_why(run: Run, maker: Maker, fault: str) -> None:
    maker.after(lambda: maker.end(fault))
    outcome, seconds = restore(run, maker, *START, "alloc:4096", "mode")
    reason = fault or f"cannot open `{maker.last}`: No such file or directory"
    assert f"program-0 disarmed {reason}\n" in outcome.status
    assert outcome.last("mode").startswith("mode 0")
    assert SOON / 2 < seconds < 10


def test_one_whose_maker_ended_right_after_it_is_taken(run: Run, maker: Maker) -> None:
    maker.after(lambda: maker.image.rename(maker.last), maker.end)
    outcome, _ = restore(run, maker)
    assert outcome.lines == [f"alloc {BASE:#x}", *RESTORED]


def test_a_process_without_one_does_not_wait(run: Run, maker: Maker) -> None:
    (maker.folder / maker.last.name).unlink()
    outcome, _ = restore(run, maker, *START, "alloc:4096", "mode", FOUNDRY_PATIENCE="50")
    assert "program-0 disarmed cannot open `" in outcome.status


@pytest.mark.parametrize("gone", ["lock", "folder"])
def test_without_a_maker_nothing_is_waited_for(run: Run, maker: Maker, gone: str) -> None:
    (maker.folder / "lock").unlink()
    if gone == "folder":
        (maker.folder / maker.last.name).unlink()
        maker.folder.rmdir()
    outcome, _ = restore(run, maker, *START, "alloc:4096", "mode", FOUNDRY_PATIENCE="50")
    assert "program-0 disarmed cannot open `" in outcome.status


def test_patience_has_an_end(run: Run, maker: Maker) -> None:
    outcome, seconds = restore(run, maker, *START, "alloc:4096", "mode", FOUNDRY_PATIENCE="1")
    assert "program-0 disarmed the restore image is still being made after 1 s\n" in outcome.status
    assert 1 <= seconds < 10
