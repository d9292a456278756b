"""What a recorder makes of what it sees."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from foundry.model import StartFile
from foundry.prefetch import recorder, seen
from foundry.prefetch.paths import lengthened, shortened
from foundry.prefetch.recorder import Recorder
from foundry.prefetch.seen import BLOCK, Held, Mapped


class World:
    """A process as /proc shows it, as the test says."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = tmp_path
        self.mapped: list[Mapped] = []
        self.held: list[Held] = []
        self.read = 0
        self.log = tmp_path / "log"
        self.log.touch()
        monkeypatch.setattr(seen, "mapped", lambda process: list(self.mapped))
        monkeypatch.setattr(seen, "held", lambda process: list(self.held))
        monkeypatch.setattr(seen, "bytes_read", lambda process: self.read)
        self.cached: set[str] = set()
        monkeypatch.setattr(seen, "is_cached", lambda path, size: path in self.cached)
        monkeypatch.setattr(recorder, "LEAST_SECONDS", 0.0)
        monkeypatch.setattr(recorder, "SHARE", 0)
        self.recorder = Recorder(self.log, without=[tmp_path / "session"])

    def file(self, name: str, size: int = 10) -> str:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size)
        return str(path)

    def map(self, path: str, *blocks: int, code: bool = False) -> None:
        self.mapped.append(Mapped(path, code, np.array(blocks, np.int64)))

    def opens(self, *paths: str) -> None:
        with self.log.open("ab") as file:
            file.write(b"".join(os.fsencode(path) + b"\n" for path in paths))

    def look(self) -> None:
        self.recorder.look(lambda: [1])

    def files(self) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
        self.look()
        return [(Path(file.path).name, file.ranges) for file in self.recorder.files("")]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_the_order_is_that_of_the_first_sight(world: World) -> None:
    a, b, c = world.file("a"), world.file("b"), world.file("c")
    world.opens(b)
    world.look()
    world.held = [Held(a, 0)]
    world.look()
    world.opens(c, b)
    assert [name for name, _ in world.files()] == ["b", "a", "c"]


def test_a_library_is_its_touched_parts_even_if_it_was_opened(world: World) -> None:
    path = world.file("lib.so", 100 * BLOCK - 7)
    world.map(path, 0, 1, code=True)
    world.map(path, 50)
    world.map(path, 99)
    world.opens(path)
    assert world.files() == [("lib.so", ((0, 2 * BLOCK), (50 * BLOCK, BLOCK), (99 * BLOCK, BLOCK - 7)))]


def test_parts_that_are_near_are_one(world: World) -> None:
    path = world.file("lib.so", 100 * BLOCK)
    world.map(path, 0, 4, 10, code=True)
    assert world.files() == [("lib.so", ((0, 5 * BLOCK), (10 * BLOCK, BLOCK)))]


def test_weights_that_are_mapped_and_given_up_before_the_next_look(world: World) -> None:
    path = world.file("weights", 3000 * BLOCK)
    world.map(path, *range(1600))
    assert world.files() == [("weights", ())]
    world.mapped = []
    assert world.files() == [("weights", ())]


def test_of_a_large_mapped_file_that_was_hardly_touched_only_that(world: World) -> None:
    path = world.file("index", 3000 * BLOCK)
    world.map(path, 7)
    world.opens(path)
    assert world.files() == [("index", ((7 * BLOCK, BLOCK),))]


def test_what_looks_add_up_to(world: World) -> None:
    path = world.file("index", 3000 * BLOCK)
    world.map(path, 7)
    world.look()
    world.mapped = []
    world.map(path, 90)
    assert world.files() == [("index", ((7 * BLOCK, BLOCK), (90 * BLOCK, BLOCK)))]


def test_a_large_file_that_was_only_opened_is_not_taken_for_read(world: World) -> None:
    path = world.file("data", 3000 * BLOCK)
    world.opens(path)
    world.held = [Held(path, 0)]
    world.read = 1000
    assert world.files() == []
    world.held = [Held(path, BLOCK)]
    assert world.files() == [("data", ((0, 2 * BLOCK),))]
    world.held = [Held(path, 1500 * BLOCK)]
    assert world.files() == [("data", ())]


def test_a_large_file_that_was_read_between_two_looks(world: World) -> None:
    opened, mapped, held = (
        world.file("opened", 3000 * BLOCK),
        world.file("mapped", 3000 * BLOCK),
        world.file("library", 9),
    )
    world.cached = {opened, mapped, held}
    world.opens(opened)
    world.map(held, 0, code=True)
    world.map(mapped, 3)
    assert world.files() == [("library", ((0, 9),)), ("mapped", ((3 * BLOCK, BLOCK),)), ("opened", ())]
    world.mapped = []
    assert world.files() == [("library", ((0, 9),)), ("mapped", ()), ("opened", ())]


def test_a_large_file_that_was_read_by_place(world: World) -> None:
    path = world.file("data", 3000 * BLOCK)
    world.held = [Held(path, 0)]
    world.read = 3000 * BLOCK
    assert world.files() == [("data", ())]


def test_no_folder_no_empty_file_nothing_of_the_session_and_nothing_that_is_gone(world: World) -> None:
    gone = world.file("gone")
    world.opens(str(world.folder), world.file("empty", 0), world.file("session/spool"), gone, "/nowhere/x")
    Path(gone).unlink()
    assert world.files() == []


def test_names_are_made_plain(world: World) -> None:
    path = world.file("a")
    world.opens(f"{world.folder}/session/../a", path, "")
    assert world.files() == [("a", ())]


def test_half_a_line_waits_for_its_end(world: World) -> None:
    path = world.file("whole")
    with world.log.open("ab") as file:
        file.write(path[:-2].encode())
        file.flush()
        assert world.files() == []
        file.write(path[-2:].encode() + b"\n")
    assert world.files() == [("whole", ())]


def test_looking_takes_a_share_of_the_time_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now, looked = [0.0], []
    monkeypatch.setattr(recorder, "SHARE", 20)
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def processes() -> list[int]:
        looked.append(now[0])
        now[0] += 0.5
        return []

    own = Recorder(world.log)
    for moment in (0.0, 5.0, 10.4, 10.6, 12.0):
        now[0] = max(now[0], moment)
        own.look(processes)
    assert looked == [0.0, 10.6]


def test_too_many_are_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_START_FILES", 2)
    world.opens(*(world.file(name) for name in "abc"))
    assert [name for name, _ in world.files()] == ["a", "b"]
    monkeypatch.setattr(recorder, "MOST_RANGES", 0)
    world.map(world.file("d.so", 9 * BLOCK), 1, code=True)
    monkeypatch.setattr(recorder, "MOST_START_FILES", 9)
    assert [name for name, _ in world.files()] == ["a", "b", "c"]


def test_the_home_folder_has_no_name(world: World) -> None:
    world.opens(world.file("a"))
    world.look()
    assert world.recorder.files(f"{world.folder}/") == (StartFile("~/a", 10),)


@pytest.mark.parametrize(
    ("path", "home", "short"),
    [
        ("/home/me/a", "/home/me", "~/a"),
        ("/home/me2/a", "/home/me", "/home/me2/a"),
        ("/a", "/", "/a"),
        ("/a", "", "/a"),
        ("/a/b", "a", "/a/b"),
    ],
)
def test_home_folders(path: str, home: str, short: str) -> None:
    assert shortened(path, home) == short
    assert lengthened(short, {"HOME": home}) == path


def test_a_user_without_a_home_has_no_files_there() -> None:
    assert lengthened("~/a", {}) is None
    assert lengthened("~/a", {"HOME": "here"}) is None
