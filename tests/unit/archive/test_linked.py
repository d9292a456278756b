"""Archives of earlier versions have linked code beside PTX: other code than the program ran, so nothing rests on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.differing import examined
from helpers.image_reader import ImageFile
from helpers.unread import ARENA, FIRST, captured

from foundry import archive, diff, image
from foundry.describe.kernels import images
from foundry.diff.report import Change, Kind, Strength
from foundry.findings import VERIFY_KERNEL_MISSING
from foundry.machine import reads_of
from foundry.model import Capture
from foundry.model.restorable import Restorable
from foundry.page.blobs import Holdings
from foundry.verify import Level, verify

PTX = b".version 9.0\n.target sm_90\n.visible .entry mix(.param .u64 a) { ret; }\n\0"
WORDS = FIRST + ARENA, FIRST + 4096, FIRST + (1 << 30)
UNREAD = "16:24"


def older(capture: Capture, text: bytes = PTX) -> Capture:
    """Make its image one whose linked code was kept beside the text."""
    return _with_image(replace(capture, blobs=(*capture.blobs, text)), original=len(capture.blobs))


def newer(capture: Capture) -> Capture:
    """Make its image the text alone."""
    blobs = [*capture.blobs]
    blobs[capture.processes[0].images[0].blob] = PTX
    return replace(capture, blobs=tuple(blobs))


def _with_image(capture: Capture, **fields: int) -> Capture:
    process = capture.processes[0]
    changed = replace(process.images[0], **fields)  # type: ignore[arg-type]
    return replace(capture, processes=(replace(process, images=(changed, *process.images[1:])),))


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    """Give one whose linked code says that words of the graph are not read."""
    return older(captured(tmp_path / "s", *WORDS, unread=UNREAD)[0])


def problems(folder: Path, capture: Capture) -> list[str]:
    archive.write(capture, folder / "a.fdry", force=True)
    with archive.open_archive(folder / "a.fdry") as opened:
        return [problem.code for problem in verify(opened, Level.DEEP).problems]


@pytest.mark.parametrize("trim", [False, True])
def test_a_restore_loads_what_the_program_handed_over(tmp_path: Path, capture: Capture, trim: bool) -> None:
    archive.write(capture, tmp_path / "a.fdry")
    found = archive.read(tmp_path / "a.fdry")
    assert found.processes[0].images[0].original == len(capture.blobs) - 1
    image.build(found, "python-0", tmp_path / "x.image", "00" * 32, trim=trim)
    file = ImageFile(tmp_path / "x.image")
    assert [file.blob(row["blob"]) for row in file.images] == [PTX]


def test_that_must_be_there_for_a_graph_to_be_restorable(capture: Capture) -> None:
    process, sizes = capture.processes[0], [len(blob) for blob in capture.blobs]
    linked, text = process.images[0].blob, process.images[0].original
    for at, problem in ((linked, False), (text, True)):
        judge = Restorable(process, [1 if index == at else size for index, size in enumerate(sizes)])
        assert (judge.problem(process.graphs[0], len(process.bodies)) is not None) == problem


def test_what_launches_read_is_not_known(tmp_path: Path, capture: Capture) -> None:
    process = capture.processes[0]
    reads = reads_of(process, capture.blobs.__getitem__)
    assert reads.absent.all() and (reads.pattern == -1).all()
    assert problems(tmp_path, capture) == []


def test_its_kernels_are_looked_for_in_the_text(tmp_path: Path, capture: Capture) -> None:
    other = older(captured(tmp_path / "o", unread=UNREAD)[0], PTX.replace(b"mix", b"max"))
    assert problems(tmp_path, other) == [VERIFY_KERNEL_MISSING]


def test_the_same_text_without_linked_code_is_the_same_code(tmp_path: Path) -> None:
    plain = captured(tmp_path / "s", unread=UNREAD)[0]
    before, after = older(plain), newer(plain)
    assert diff.compare(before, after) == []
    report = examined(before, after)
    assert report.verdict == Strength.NOTE
    (change,) = report.changes[Kind.NOTES]
    assert isinstance(change, Change) and change.what == "linked code that is not loaded"
    assert change.after == "none" and change.before != "none"
    other = examined(before, older(plain, PTX.replace(b"ret", b"nop")))
    assert other.verdict == Strength.DIFFERENT
    assert [change.what for change in other.changes[Kind.KERNELS]] == ["code"]


def test_words_that_differ_are_not_called_unread(tmp_path: Path) -> None:
    before, after = (older(captured(tmp_path / name, 0, word, unread="24:8")[0]) for name, word in (("a", 3), ("b", 4)))
    assert examined(before, after).words == {"different": 1}


def test_what_is_told_of_it(tmp_path: Path, capture: Capture) -> None:
    linked = capture.processes[0].images[0]
    (row,) = images(capture.processes[0], [len(blob) for blob in capture.blobs])
    assert (row["blob"], row["original"], row["stored_bytes"]) == (linked.blob, linked.original, len(PTX))
    archive.write(capture, tmp_path / "a.fdry")
    with archive.open_archive(tmp_path / "a.fdry") as opened:
        holdings = Holdings(opened.head)
        holdings.take(opened.process(0))
    assert holdings.bytes() == {
        "Kernel images of libkernels.so": len(PTX),
        "Linked code that is not loaded": len(capture.blobs[linked.blob]),
    }
