"""An open archive: a process or a blob at a time, and all digests at once."""

from __future__ import annotations

import json
import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.archive_builder import Piece, build, changed, pieces_of
from helpers.varied import varied_capture
from hypothesis import given, settings
from hypothesis import strategies as st

from foundry import archive
from foundry.archive import layout, parallel
from foundry.archive.container import Container, Section
from foundry.archive.layout import WHOLE, Kind
from foundry.compat.compare import origins
from foundry.errors import ArchiveError
from foundry.model import Capture, LibraryPlace

PLACE = LibraryPlace("libkernels.so", "ab" * 20, 64, 70, 0)


@pytest.fixture
def capture() -> Capture:
    """Two processes, and blobs that are cut at odd places, with empty ones among them."""
    captures = (varied_capture(random.Random(seed)) for seed in range(99))
    found: Capture = next(one for one in captures if len(one.processes) == 2)
    more = (b"x" * 250, b"", b"y" * 70, bytes(range(80)), b"z" * 100, b"")
    return replace(found, blobs=(*found.blobs, *more))


@pytest.fixture
def path(capture: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(layout, "BLOB_CUT", 100)
    archive.write(capture, tmp_path / "x.fdry")
    return tmp_path / "x.fdry"


def code_of(path: Path) -> str:
    with pytest.raises(ArchiveError) as caught, archive.open_archive(path) as opened:
        opened.check_sections()
    return caught.value.code


def test_it_hands_out_all_that_a_whole_reading_does(path: Path, capture: Capture) -> None:
    with archive.open_archive(path) as opened:
        assert opened.roles == tuple(process.role for process in capture.processes)
        assert [opened.process(index) for index in (1, 0)] == [capture.processes[1], capture.processes[0]]
        assert [opened.blob(index) for index in range(len(capture.blobs))] == list(capture.blobs)
        assert dict(opened.blobs()) == dict(enumerate(capture.blobs))
        assert (opened.head.context, opened.head.files) == (capture.context, capture.files)
        assert opened.head.findings == capture.findings
        assert [entry.size for entry in opened.head.blobs] == [len(blob) for blob in capture.blobs]
        assert opened.summary() == archive.summary(path)
        assert (opened.path, opened.size, opened.capture_id) == (path, path.stat().st_size, opened.summary().capture_id)
        opened.check_sections()


def test_an_outline_says_what_the_process_does(path: Path, capture: Capture) -> None:
    with archive.open_archive(path) as opened:
        outlines = [opened.outline(index) for index in range(2)]
    for outline, process in zip(outlines, capture.processes, strict=True):
        assert (outline.role, outline.counters) == (process.role, process.counters)
        assert outline.primary == {context.device for context in process.contexts if context.primary}
        assert outline.origins == {(found.name, found.build_id) for found in origins(process.images)}


def test_neighbouring_blobs_cost_one_unpacking(path: Path, capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[int] = []
    honest = Container.unpacked

    def counted(self: Container, section: Section) -> bytes:
        unpacked.append(section.offset)
        return honest(self, section)

    with archive.open_archive(path) as opened:
        assert opened.head
        monkeypatch.setattr(Container, "unpacked", counted)
        for index in range(len(capture.blobs)):
            opened.blob(index)
    assert len(unpacked) == len(set(unpacked)) == sum(section.kind == Kind.BLOBS for section in opened.sections)


def test_a_process_does_not_need_what_belongs_to_others(path: Path, capture: Capture) -> None:
    pieces = pieces_of(capture)
    at = max(index for index, piece in enumerate(pieces) if piece.kind == Kind.GROUPS)
    pieces[at] = replace(pieces[at], digest=bytes(32))
    path.write_bytes(build(pieces))
    with archive.open_archive(path) as opened:
        assert opened.process(0) == capture.processes[0]
        with pytest.raises(ArchiveError, match="does not match its digest"):
            opened.process(1)


def test_damage_of_any_section_is_found(path: Path, capture: Capture) -> None:
    pieces = pieces_of(capture)
    for index, piece in enumerate(pieces):
        path.write_bytes(build([*pieces[:index], replace(piece, digest=bytes(32)), *pieces[index + 1 :]]))
        assert code_of(path) == "archive-section-damaged", piece


def test_damage_of_what_may_be_skipped_is_found(path: Path, capture: Capture) -> None:
    future = Piece(4711, WHOLE, b"from the future", flags=0, digest=bytes(32))
    path.write_bytes(build([*pieces_of(capture), future]))
    assert archive.read(path) == capture
    assert code_of(path) == "archive-section-damaged"


@pytest.mark.parametrize("index", range(6))
def test_a_blob_that_is_not_its_digest_is_found_across_cuts(path: Path, capture: Capture, index: int) -> None:
    at = len(capture.blobs) - 6 + index
    pieces = pieces_of(capture)
    head = next(piece for piece in pieces if piece.kind == Kind.CAPTURE)
    text = json.loads(head.data)
    text["blobs"][at]["sha256"] = "00" * 32
    path.write_bytes(build(changed(pieces, Kind.CAPTURE, data=json.dumps(text).encode())))
    assert code_of(path) == "archive-content"
    with pytest.raises(ArchiveError, match=f"blob {at} does not match"):
        archive.read(path)


@given(
    sizes=st.lists(st.integers(0, 40), max_size=12),
    cut=st.integers(1, 30),
    wrong=st.integers(0, 11),
    outside=st.sets(st.integers(0, 11)),
)
@settings(max_examples=150, deadline=None)
def test_wherever_the_cuts_are_all_blobs_are_checked(
    sizes: list[int], cut: int, wrong: int, outside: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    blobs = tuple(bytes([number + 1]) * size for number, size in enumerate(sizes))
    places = {number: replace(PLACE, size=sizes[number]) for number in outside if number < len(sizes) and sizes[number]}
    path = tmp_path_factory.getbasetemp() / "cuts.fdry"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOB_CUT", cut)
        pieces = pieces_of(Capture((), blobs, outside=places))
        path.write_bytes(build(pieces))
        with archive.open_archive(path) as opened:
            opened.check_sections()
            there = {number: blob for number, blob in enumerate(blobs) if number not in places}
            assert dict(opened.blobs()) == there
            assert {number: opened.blob(number) for number in there} == there
        if wrong not in there:
            return
        text = json.loads(pieces[1].data)
        text["blobs"][wrong]["sha256"] = "00" * 32
        path.write_bytes(build(changed(pieces, Kind.CAPTURE, data=json.dumps(text).encode())))
        with pytest.raises(ArchiveError, match=f"blob {wrong} does not match"), archive.open_archive(path) as opened:
            opened.check_sections()


def test_a_blob_that_lies_in_a_library_is_not_handed_out(path: Path, capture: Capture) -> None:
    index = len(capture.blobs) - 4
    thin = replace(capture, outside={index: PLACE})
    archive.write(thin, path, force=True)
    with archive.open_archive(path) as opened:
        assert opened.head.thin
        assert opened.head.blobs[index].library == PLACE
        with pytest.raises(ArchiveError, match=r"`libkernels\.so`, build id abab") as caught:
            opened.blob(index)
        assert caught.value.code == "blob-outside"
        assert opened.blob(index + 1) == capture.blobs[index + 1]
        assert opened.process(0) == capture.processes[0]
        assert index not in dict(opened.blobs())
        opened.check_sections()
    with pytest.raises(ArchiveError) as caught:
        archive.read(path)
    assert caught.value.code == "blob-outside"
    assert archive.read(path, lambda place: capture.blobs[index] if place == PLACE else b"") == thin
    with pytest.raises(ArchiveError, match=f"blob {index} is not what lies at byte 64") as caught:
        archive.read(path, lambda _: b"y" * 69 + b"!")
    assert caught.value.code == "blob-outside"


def test_few_pieces_are_in_flight() -> None:
    most = running = 0
    lock = threading.Lock()

    def work(item: int) -> int:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return item

    taken = []
    for item in parallel.in_order(work, iter(range(200))):
        taken.append(item)
    assert taken == list(range(200))
    assert most <= parallel.threads()


def test_a_failure_ends_the_work() -> None:
    asked = []

    def items() -> object:
        for item in range(1000):
            asked.append(item)
            yield item

    def work(item: int) -> int:
        return 1 // (item - 3)

    with pytest.raises(ZeroDivisionError):
        list(parallel.in_order(work, items()))  # type: ignore[arg-type]
    assert len(asked) < 100


def test_what_is_begun_goes_on_beside_the_caller() -> None:
    gate = threading.Event()

    def work(item: int) -> int:
        gate.wait(20)
        return item * 2

    wait = parallel.begun(work, range(9))
    gate.set()
    assert wait() == [item * 2 for item in range(9)]


def test_what_is_begun_has_ended_when_a_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "threads", lambda: 2)
    running: list[int] = []
    before = threading.active_count()

    def work(item: int) -> int:
        running.append(item)
        threading.Event().wait(0.02)
        running.remove(item)
        return 1 // (item - 1)

    with pytest.raises(ZeroDivisionError):
        parallel.begun(work, range(50))()
    assert running == []
    assert threading.active_count() == before


def test_small_work_is_done_by_who_waits_for_it() -> None:
    caller = threading.get_ident()
    assert parallel.beside(threading.get_ident, small=True)() == caller
    assert parallel.beside(threading.get_ident)() != caller


def test_only_the_first_value_is_handed_on() -> None:
    handed: parallel.Handed[int] = parallel.Handed()
    found: list[int] = []
    taker = threading.Thread(target=lambda: found.append(handed.taken()))
    taker.start()
    handed.hand(1)
    handed.hand(2)
    taker.join(20)
    assert found == [1]
    assert handed.taken() == 1


@pytest.mark.parametrize("part", ["process", "blobs"])
def test_the_first_fault_is_told_wherever_else_one_is(capture: Capture, tmp_path: Path, part: str) -> None:
    """Blobs are read beside the processes, but told of behind them."""
    pieces = pieces_of(capture)
    at = next(index for index, piece in enumerate(pieces) if piece.kind == Kind.PROCESS)
    last = next(index for index, piece in enumerate(pieces) if piece.kind == Kind.BLOBS)
    damaged = {last} if part == "blobs" else {at, last}
    broken = [replace(piece, digest=bytes(32)) if index in damaged else piece for index, piece in enumerate(pieces)]
    (tmp_path / "x.fdry").write_bytes(build(broken))
    with pytest.raises(ArchiveError, match=f"section {part} at byte"):
        archive.read(tmp_path / "x.fdry")


def test_a_damaged_section_is_told_before_what_it_says(capture: Capture, tmp_path: Path) -> None:
    """Parameters are decoded while their digest is still being made."""
    pieces = pieces_of(capture)
    changed_ones = [
        replace(piece, data=piece.data + bytes(8), stored=None, digest=bytes(32))
        if piece.kind == Kind.PARAMETERS
        else piece
        for piece in pieces
    ]
    (tmp_path / "x.fdry").write_bytes(build(changed_ones))
    with pytest.raises(ArchiveError, match="section parameters at byte") as caught:
        archive.read(tmp_path / "x.fdry")
    assert caught.value.code == "archive-section-damaged"
