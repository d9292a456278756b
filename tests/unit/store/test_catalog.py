from __future__ import annotations

import os
from pathlib import Path

import pytest

from foundry.store import catalog
from foundry.store.key import CommandKey
from foundry.store.location import Location


@pytest.fixture
def place(tmp_path: Path) -> Location:
    return Location(tmp_path, tmp_path)


def test_what_cannot_be_read_is_listed_with_its_fault(place: Location) -> None:
    (place.folder / "x.fdry").write_text("no archive")
    (place.folder / "y.txt").write_text("something else")
    (entry,) = catalog.entries(place)
    assert (entry.path.name, entry.size, entry.summary) == ("x.fdry", 10, None)
    assert entry.fault


def test_the_newest_comes_first(place: Location) -> None:
    for age, name in enumerate("abc"):
        (place.folder / f"{name}.fdry").write_text("x")
        os.utime(place.folder / f"{name}.fdry", (1000 - age, 1000 - age))
    assert [entry.path.stem for entry in catalog.entries(place)] == ["a", "b", "c"]


def test_lookup_wants_the_exact_name(tmp_path: Path) -> None:
    (tmp_path / "read").mkdir()
    (tmp_path / "write").mkdir()
    place = Location(tmp_path / "read", tmp_path / "write")
    key = CommandKey("serve-1234567890123456.fdry", "serve-123456")
    assert catalog.lookup(place, key) is None
    (tmp_path / "read" / "serve-1234569999999999.fdry").touch()
    (tmp_path / "read" / "serve-1234567890123456.incomplete.fdry").touch()
    assert catalog.lookup(place, key) is None
    assert [path.name for path in catalog.relatives(place, key)] == [
        "serve-1234567890123456.incomplete.fdry",
        "serve-1234569999999999.fdry",
    ]
    (tmp_path / "write" / key.name).touch()
    assert catalog.lookup(place, key) == tmp_path / "write" / key.name


def test_only_old_partial_files_are_removed(place: Location) -> None:
    for name, age in (("old", 7200), ("new", 60)):
        path = place.folder / f".foundry-{name}.partial"
        path.touch()
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    catalog.remove_partial(place)
    assert [path.name for path in place.folder.iterdir()] == [".foundry-new.partial"]
