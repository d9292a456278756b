from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import tempfile
import time
from pathlib import Path

import pytest

from foundry.errors import AbandonedError, FoundryError
from foundry.session import record, workspace
from foundry.store.location import Location


def test_a_workspace_is_private_and_goes() -> None:
    with workspace.Workspace() as one:
        assert stat.S_IMODE(one.folder.stat().st_mode) == 0o700
        assert one.spool.is_dir()
        (one.spool / "x").mkdir()
    assert not one.folder.exists()


def open_files() -> list[int]:
    return [int(path.name) for path in Path("/proc/self/fd").iterdir()]


def test_folders_are_removed_once_nobody_holds_their_lock(tmp_path: Path) -> None:
    place = Location(tmp_path, tmp_path)
    first = workspace.for_exec(place)
    held = [number for number in open_files() if number >= workspace.FIRST_KEPT_FILE]
    assert all(os.get_inheritable(number) for number in held)
    second = workspace.for_exec(place)
    assert first.exists()
    assert second.exists()
    for number in held:
        fcntl.flock(number, fcntl.LOCK_UN)
        os.close(number)
    workspace.remove_stale(place)
    assert not first.exists()
    assert second.exists()


def test_half_made_folders_go_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Location(tmp_path, tmp_path)
    (place.sessions / ".half").mkdir(parents=True)
    workspace.remove_stale(place)
    assert (place.sessions / ".half").exists()
    monkeypatch.setattr(workspace, "HALF_MADE_SECONDS", -1.0)
    workspace.remove_stale(place)
    assert not (place.sessions / ".half").exists()


ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_no_command_runs_removes_it(number: signal.Signals) -> None:
    with pytest.raises(AbandonedError) as caught, workspace.Workspace() as one:
        os.kill(os.getpid(), number)
        pytest.fail("it was not told")
    assert (str(caught.value), caught.value.exit_code) == (f"ended by {number.name}", 128 + number)
    assert not one.folder.exists()


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_between_its_making_and_its_entering_removes_it(number: signal.Signals) -> None:
    one = workspace.Workspace()
    os.kill(os.getpid(), number)
    with pytest.raises(AbandonedError), one:
        pytest.fail("it was not told")
    assert not one.folder.exists()


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_it_is_removed_waits_until_it_is_gone(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = []

    def slow(folder: Path, **_: object) -> None:
        os.kill(os.getpid(), number)
        removed.append(folder)

    got: list[int] = []
    previous = signal.signal(number, lambda number, _: got.append(number))
    try:
        with workspace.Workspace() as one:
            monkeypatch.setattr(shutil, "rmtree", slow)
        assert removed == [one.folder]
        assert got == [number], "it is handed on"
    finally:
        signal.signal(number, previous)
        monkeypatch.undo()
        shutil.rmtree(one.folder)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_that_was_ignored_stays_ignored(number: signal.Signals) -> None:
    previous = signal.signal(number, signal.SIG_IGN)
    try:
        with workspace.Workspace():
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, previous)


def test_nothing_stays_of_a_folder_that_could_not_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/not/there")
    before = [signal.getsignal(number) for number in ENDING]
    with pytest.raises(FoundryError, match="no temporary folder can be made in `/not/there`"):
        workspace.Workspace()
    assert [signal.getsignal(number) for number in ENDING] == before


@pytest.mark.parametrize("what", ["young", "running", "recorded", "of no session", "linked", "useless", "noted"])
def test_only_what_holds_nothing_and_is_used_by_nobody_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "foundry-abc"
    (folder / "spool" / "program-0").mkdir(parents=True)
    (folder / "lock").touch()
    if what in ("recorded", "noted"):
        record.write(folder, record.Record({}, "", "", False, False, 0))
    if what == "recorded":
        (folder / "spool" / "program-0" / "events").write_text("x")
    if what == "of no session":
        shutil.rmtree(folder / "spool")
    if what == "linked":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    if what != "young":
        long_ago = time.time() - 2 * workspace.HALF_MADE_SECONDS
        os.utime(folder, (long_ago, long_ago), follow_symlinks=False)
    with (folder / "lock").open() as file:
        if what == "running":
            fcntl.flock(file, fcntl.LOCK_EX)
        workspace.remove_old_left_overs()
    assert folder.exists() == (what not in ("useless", "noted"))
