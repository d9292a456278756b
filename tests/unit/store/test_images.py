from __future__ import annotations

import threading
from pathlib import Path

import pytest

from foundry.store import images


def build(folder: Path) -> None:
    (folder / "rank-0.image").write_text("image")


def good(_: Path) -> str:
    return ""


def test_images_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"

    def fail(temporary: Path) -> None:
        build(temporary)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        images.make(folder, fail)
    assert list(folder.parent.iterdir()) == []
    images.make(folder, build)
    assert [path.name for path in folder.parent.iterdir()] == ["id-1"]
    assert images.ready(folder, ["rank-0"], good)


def test_ready_wants_every_role_and_no_fault(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"
    assert not images.ready(folder, ["rank-0"], good)
    images.make(folder, build)
    assert not images.ready(folder, ["rank-0", "rank-1"], good)
    assert not images.ready(folder, ["rank-0"], lambda _: "damaged")


def test_a_folder_that_stands_there_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"
    folder.mkdir(parents=True)
    (folder / "rank-0.image").write_text("damaged")
    (folder / "more").write_text("x")
    images.make(folder, build)
    assert [path.name for path in folder.iterdir()] == ["rank-0.image"]
    assert (folder / "rank-0.image").read_text() == "image"


def test_many_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            for _ in range(20):
                temporary = folder.with_name(f".{number}")
                temporary.mkdir(parents=True)
                build(temporary)
                images._take_place(temporary, folder)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert images.ready(folder, ["rank-0"], good)


def test_what_a_killed_start_left_goes_with_the_next_one(tmp_path: Path) -> None:
    left = tmp_path / "images" / ".other-2-abc.partial"
    left.mkdir(parents=True)
    (left / "rank-0.image").write_text("half")
    images.make(tmp_path / "images" / "id-1", build)
    assert [path.name for path in left.parent.iterdir()] == ["id-1"]


def test_what_another_start_is_making_stays(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"

    def slow(temporary: Path) -> None:
        build(temporary)
        images.make(folder, build)
        assert (temporary / "rank-0.image").read_text() == "image"

    images.make(folder.with_name("id-2"), slow)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["id-1", "id-2"]
