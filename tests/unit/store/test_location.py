from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from foundry.errors import StoreError
from foundry.store import location


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_cache_folder_is_preferred_to_home(tmp_path: Path) -> None:
    found = location.find({"XDG_CACHE_HOME": str(tmp_path / "c"), "HOME": str(tmp_path / "h")})
    assert found.folder == found.writable == tmp_path / "c" / "foundry"
    assert found.note == ""
    assert stat.S_IMODE(found.folder.stat().st_mode) == 0o700
    assert location.find({"HOME": str(tmp_path / "h")}).folder == tmp_path / "h" / ".cache" / "foundry"


def test_a_relative_cache_folder_is_ignored(tmp_path: Path) -> None:
    found = location.find({"XDG_CACHE_HOME": "relative", "HOME": str(tmp_path)})
    assert found.folder == tmp_path / ".cache" / "foundry"


def test_too_open_a_folder_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "foundry"
    folder.mkdir(mode=0o755)
    folder.chmod(0o777)
    location.find({"XDG_CACHE_HOME": str(tmp_path)})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_is_not_followed(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "foundry").symlink_to(tmp_path / "elsewhere")
    found = location.find({"XDG_CACHE_HOME": str(tmp_path)})
    assert found.writable == temporary / f"foundry-{os.geteuid()}"
    assert "not a folder" in found.note


def test_another_users_folder_is_not_used(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foundry").mkdir()
    real = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: real + 1)
    with pytest.raises(StoreError, match="belongs to another user"):
        location.find({"XDG_CACHE_HOME": str(tmp_path)})


def test_a_read_only_store_is_still_read(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foundry").mkdir(mode=0o700)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and Path(path) != tmp_path / "foundry")
    found = location.find({"XDG_CACHE_HOME": str(tmp_path)})
    assert found.folder == tmp_path / "foundry"
    assert found.writable == temporary / f"foundry-{os.geteuid()}"
    assert found.folders == (found.folder, found.writable)
    assert "cannot be written" in found.note


def test_no_folder_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/not-there")
    with pytest.raises(StoreError, match="no folder for archives"):
        location.find({"XDG_CACHE_HOME": "/proc/not-there"})


def test_the_salt_stays(tmp_path: Path) -> None:
    found = location.find({"XDG_CACHE_HOME": str(tmp_path)})
    salt = found.salt()
    assert len(salt) == 32
    assert found.salt() == salt
    assert [path.name for path in found.folder.iterdir()] == [location.SALT_NAME]
    assert stat.S_IMODE((found.folder / location.SALT_NAME).stat().st_mode) == 0o600
