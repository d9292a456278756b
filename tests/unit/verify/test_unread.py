"""The deep level asks the code which words are read before it calls a pointer wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.unread import ARENA, FIRST, captured

from foundry import archive
from foundry.findings import VERIFY_DANGLING_COUNT, VERIFY_POINTER, VERIFY_REFERENCES
from foundry.model import Capture, LibraryPlace
from foundry.verify import Level, verify

WORDS = FIRST + ARENA, FIRST + 4096, FIRST + (1 << 30)
UNREAD = "16:24"


def codes(folder: Path, capture: Capture) -> list[str]:
    archive.write(capture, folder / "a.fdry", force=True)
    with archive.open_archive(folder / "a.fdry") as opened:
        return [problem.code for problem in verify(opened, Level.DEEP).problems]


def claiming(capture: Capture, **fields: object) -> Capture:
    process = capture.processes[0]
    return replace(capture, processes=(replace(process, graphs=(replace(process.graphs[0], **fields),)),))  # type: ignore[arg-type]


def test_words_that_are_not_read_may_point_anywhere(tmp_path: Path) -> None:
    capture = captured(tmp_path / "s", *WORDS, unread=UNREAD)[0]
    assert capture.processes[0].graphs[0].restorable
    assert codes(tmp_path, capture) == []


def test_an_archive_that_counts_them_is_sound_as_well(tmp_path: Path) -> None:
    capture = captured(tmp_path / "s", *WORDS, unread=UNREAD)[0]
    assert codes(tmp_path, claiming(capture, references=(0, 1), dangling_words=1)) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"references": ()}, VERIFY_REFERENCES),
        ({"references": (0, 3)}, VERIFY_REFERENCES),
        ({"dangling_words": 2}, VERIFY_DANGLING_COUNT),
    ],
)
def test_what_is_read_must_be_said_and_no_more_than_there_is(
    tmp_path: Path, fields: dict[str, object], code: str
) -> None:
    capture = captured(tmp_path / "s", *WORDS, unread=UNREAD)[0]
    assert code in codes(tmp_path, claiming(capture, **fields))


def test_words_that_are_read_must_be_honoured(tmp_path: Path) -> None:
    capture = captured(tmp_path / "s", *WORDS)[0]
    assert VERIFY_POINTER in codes(tmp_path, claiming(capture, reason_code="", reason=""))


def test_of_code_that_is_elsewhere_nobody_knows(tmp_path: Path) -> None:
    capture = captured(tmp_path / "s", *WORDS, unread=UNREAD)[0]
    image = capture.processes[0].images[0]
    place = LibraryPlace("libmix.so", "ab" * 20, 0, len(capture.blobs[image.blob]), 0)
    thin = replace(capture, outside={image.blob: place})
    assert set(codes(tmp_path, thin)) == {"blob-outside"}
