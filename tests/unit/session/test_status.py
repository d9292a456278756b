from __future__ import annotations

from pathlib import Path

import pytest

from foundry.session.status import Status


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "status"


def say(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_nothing_yet(path: Path) -> None:
    status = Status(path)
    assert not status.read()
    assert not status.ready


def test_lines_are_read_once_and_only_whole(path: Path) -> None:
    status = Status(path)
    say(path, "python-0 armed\npython-0 commi")
    assert status.read()
    assert status.armed == {"python-0"}
    assert not status.ready
    say(path, "tted\n")
    assert status.read()
    assert not status.read()
    assert status.ready


def test_every_armed_rank_must_be_ready(path: Path) -> None:
    status = Status(path)
    say(path, "rank-0 armed\nrank-1 armed\nhelper-0 armed\nrank-0 committed\n")
    status.read()
    assert not status.ready
    say(path, "rank-1 committed\n")
    status.read()
    assert status.ready


def test_a_rank_that_gave_up_is_not_waited_for(path: Path) -> None:
    status = Status(path)
    say(path, "rank-0 armed\nrank-1 armed\nrank-0 committed\nrank-1 disarmed range taken: device 0 wants 0x4\n")
    status.read()
    assert status.ready
    assert status.disarmed == {"rank-1": "range taken: device 0 wants 0x4"}
    assert status.range_taken == "range taken: device 0 wants 0x4"


@pytest.mark.parametrize("line", ["\n", "x\n", "- disarmed\n", "a future state\n", "\xff\xfe\n"])
def test_strange_lines_are_no_failure(path: Path, line: str) -> None:
    status = Status(path)
    say(path, line)
    status.read()
    assert not status.ready


def test_the_hook_says_it_in_these_words() -> None:
    native = Path(__file__).parents[3] / "foundry" / "native"
    rooms = (native / room for room in ("hook", "restore", "capi"))
    sources = "".join(file.read_text() for room in rooms for file in room.glob("*.cpp"))
    for words in ('status_line("armed"', 'status_line("disarmed"', 'status_line("committed"', '"range taken: '):
        assert words in sources
