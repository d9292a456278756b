from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foundry.store import images


def build(folder: Path) -> None:
    (folder / "rank-0.image").write_text("image")


def good(_: Path) -> str:
    return ""


def never() -> bool:
    return False


def test_images_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"

    def fail(temporary: Path) -> None:
        build(temporary)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        images.make(folder, fail, never)
    assert list(folder.parent.iterdir()) == []
    images.make(folder, build, never)
    assert [path.name for path in folder.parent.iterdir()] == ["id-1"]
    assert images.ready(folder, ["rank-0"], good)


def test_ready_wants_every_role_and_no_fault(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"
    assert not images.ready(folder, ["rank-0"], good)
    images.make(folder, build, never)
    assert not images.ready(folder, ["rank-0", "rank-1"], good)
    (folder / "rank-0.image").write_text("other")
    assert not images.ready(folder, ["rank-0"], lambda _: "damaged")


def test_what_is_whole_is_not_read_again_until_it_is_another_file(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"
    images.make(folder, build, never)
    asked: list[Path] = []

    def fault_of(path: Path) -> str:
        asked.append(path)
        return "damaged" if path.read_text() != "image" else ""

    assert images.ready(folder, ["rank-0"], fault_of) and not asked
    os.utime(folder / "rank-0.image", ns=(1, 1))
    assert [images.ready(folder, ["rank-0"], fault_of) for _ in range(3)] == [True] * 3
    assert len(asked) == 1
    (folder / "rank-0.image").write_text("imago")
    assert not images.ready(folder, ["rank-0"], fault_of)
    assert not images.ready(folder, ["rank-0"], fault_of), "a damaged one is not noted"
    images.make(folder, build, never)
    assert images.ready(folder, ["rank-0"], fault_of) and len(asked) == 3


def test_a_note_that_cannot_be_written_or_read_does_no_harm(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"
    images.make(folder, build, never)
    (folder / "whole").unlink()
    (folder / "whole").mkdir()
    assert images.ready(folder, ["rank-0"], good) and images.ready(folder, ["rank-0"], good)
    assert sorted(path.name for path in folder.iterdir()) == ["rank-0.image", "whole"]
    (folder / "whole").rmdir()
    (folder / "whole").write_bytes(b"\xff\xfe")
    assert images.ready(folder, ["rank-0"], good)


def test_a_folder_that_stands_there_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"
    folder.mkdir(parents=True)
    (folder / "rank-0.image").write_text("damaged")
    (folder / "more").write_text("x")
    images.make(folder, build, never)
    assert sorted(path.name for path in folder.iterdir()) == ["rank-0.image", "whole"]
    assert (folder / "rank-0.image").read_text() == "image"


def at_once(count: int, action: Callable[[], object]) -> list[BaseException]:
    """Do it in so many threads, and return what went wrong."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_many_that_want_the_same_make_it_once_and_none_moves_it_away(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"
    built: list[int] = []

    def slow(temporary: Path) -> None:
        built.append(temporary.stat().st_ino)
        build(temporary)
        time.sleep(0.05)

    def make() -> None:
        images.make(folder, slow, lambda: images.ready(folder, ["rank-0"], good))
        assert folder.stat().st_ino == built[0]

    assert (at_once(12, make), len(built)) == ([], 1)
    assert [path.name for path in folder.parent.iterdir()] == ["id-1"]


def test_many_that_replace_it_do_so_one_after_the_other(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"

    def replace() -> None:
        for _ in range(10):
            images.make(folder, build, never)

    assert at_once(4, replace) == []
    assert images.ready(folder, ["rank-0"], good)
    assert [path.name for path in folder.parent.iterdir()] == ["id-1"]


def test_one_that_takes_too_long_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "images" / "id-1"
    monkeypatch.setattr(images, "WAIT_SECONDS", 0.05)

    def stuck(temporary: Path) -> None:
        build(temporary)
        images.make(folder, build, never)
        assert (temporary / "rank-0.image").read_text() == "image"

    images.make(folder, stuck, never)
    assert [path.name for path in folder.parent.iterdir()] == ["id-1"]
    assert images.ready(folder, ["rank-0"], good)


def test_what_was_left_under_the_same_name_is_not_built_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "images" / "id-1"
    left = folder.with_name(".id-1.partial")
    left.mkdir(parents=True)
    (left / "rank-1.image").write_text("half")
    monkeypatch.setattr(images, "_remove_abandoned", lambda _: None)  # as if it had been left a moment later
    images.make(folder, build, never)
    assert sorted(path.name for path in folder.iterdir()) == ["rank-0.image", "whole"]


def test_what_a_killed_start_left_goes_with_the_next_one(tmp_path: Path) -> None:
    left = tmp_path / "images" / ".other-2-abc.partial"
    left.mkdir(parents=True)
    (left / "rank-0.image").write_text("half")
    images.make(tmp_path / "images" / "id-1", build, never)
    assert [path.name for path in left.parent.iterdir()] == ["id-1"]


def test_what_another_start_is_making_stays(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "id-1"

    def slow(temporary: Path) -> None:
        build(temporary)
        images.make(folder, build, never)
        assert (temporary / "rank-0.image").read_text() == "image"

    images.make(folder.with_name("id-2"), slow, never)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["id-1", "id-2"]


def test_an_unfinished_folder_that_is_gone_again_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when another start gives its folder the final name just after this one found that it is there."""
    real, refused = Path.mkdir, []

    def mkdir(path: Path, *arguments: Any, **named: Any) -> None:
        if path.name.endswith(".partial") and not refused:
            refused.append(path)
            raise FileExistsError(17, "File exists")
        real(path, *arguments, **named)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    folder = tmp_path / "images" / "id-1"
    images.make(folder, build, never)
    assert refused
    assert images.ready(folder, ["rank-0"], good)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(Path, "mkdir"), (os, "open"), (fcntl, "flock"), (images, "_lock"), (images, "_is"), (Path, "iterdir")],
)
def test_a_start_that_is_ended_while_it_takes_its_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """A signal comes between any two steps."""
    folder = tmp_path / "images" / "id-1"
    folder.parent.mkdir(mode=0o700)
    plain = getattr(owner, name)
    calls: list[object] = []

    def ended(*given: Any, **named: Any) -> Any:
        found = plain(*given, **named)
        if images.unfinished(folder) in given or (isinstance(given[0], int) and not calls):
            calls.append(given)
            if len(calls) == 1:
                raise SystemExit
        return found

    monkeypatch.setattr(owner, name, ended)
    with pytest.raises(SystemExit):
        images.make(folder, build, never)
    monkeypatch.undo()
    assert calls
    assert list(folder.parent.iterdir()) == []
