from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from foundry.session import workspace
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
