"""The levels on the conformance vectors: what is valid passes, what is not is named with its code, and all of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.archive_builder import Piece, build, pieces_of
from helpers.verified import verified_capture

from foundry import archive
from foundry.archive.layout import Kind
from foundry.errors import ArchiveError, ArchiveVersionError
from foundry.findings import ARCHIVE_SECTION_DAMAGED as DAMAGED
from foundry.verify import Level, Report, verify

VECTORS = Path(__file__).resolve().parents[3] / "format_spec" / "vectors" / "v1"
VALID = sorted((VECTORS / "valid").glob("*.fdry"))
INVALID: dict[str, str] = json.loads((VECTORS / "invalid" / "codes.json").read_text())


def looked_at(path: Path, level: Level) -> Report:
    with archive.open_archive(path) as opened:
        return verify(opened, level)


@pytest.mark.parametrize("level", [Level.QUICK, Level.FULL])
@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_archive_is_sound(path: Path, level: Level) -> None:
    report = looked_at(path, level)
    assert (report.problems, report.sound) == ([], True)
    with archive.open_archive(path) as opened:
        summary = opened.summary()
    assert (report.graphs, report.processes) == (summary.graphs, len(summary.processes))
    assert report.nodes == sum(process.nodes for process in summary.processes)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_the_only_fault_of_valid_archives_is_that_their_images_are_invented(path: Path) -> None:
    """Their images are random bytes, which no driver would load; nothing else in them is wrong."""
    report = looked_at(path, Level.DEEP)
    assert {problem.code for problem in report.problems if problem.severity > 1} <= {"verify-image"}
    assert report.graphs == looked_at(path, Level.FULL).graphs


@pytest.mark.parametrize("level", [Level.FULL, Level.DEEP])
@pytest.mark.parametrize("name", sorted(INVALID))
def test_an_invalid_archive_gets_its_code(name: str, level: Level) -> None:
    path = VECTORS / "invalid" / f"{name}.fdry"
    try:
        report = looked_at(path, level)
    except ArchiveError as error:
        assert error.code == INVALID[name]
        assert isinstance(error, ArchiveVersionError) == (error.code == "archive-too-new")
        return
    assert not report.sound
    assert INVALID[name] in {problem.code for problem in report.problems}


@pytest.mark.parametrize("name", sorted(INVALID))
def test_the_quick_level_answers_on_all_of_them(name: str) -> None:
    try:
        report = looked_at(VECTORS / "invalid" / f"{name}.fdry", Level.QUICK)
    except ArchiveError as error:
        assert error.code == INVALID[name]
        return
    assert {problem.code for problem in report.problems} <= {INVALID[name]}


@pytest.mark.parametrize("level", [Level.FULL, Level.DEEP])
@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_whichever_section_is_damaged_is_told_once(path: Path, level: Level, tmp_path: Path) -> None:
    """Some are compared where a process is decoded, the others by themselves."""
    data = path.read_bytes()
    with archive.open_archive(path) as opened:
        sections, version = opened.sections, (opened.major, opened.minor)
    stored = [data[section.offset :][: section.stored] for section in sections]
    pieces = [
        Piece(section.kind, section.process, b"", section.flags, frame, section.raw, section.digest)
        for section, frame in zip(sections, stored, strict=True)
    ]
    broken = tmp_path / "x.fdry"
    for index, section in enumerate(sections):
        wrong = replace(pieces[index], digest=bytes(32))
        made = build([*pieces[:index], wrong, *pieces[index + 1 :]], major=version[0], minor=version[1])
        broken.write_bytes(made)
        told = f"section {section.name} at byte {section.offset} does not match its digest"
        assert [problem.text for problem in looked_at(broken, level).problems if problem.code == DAMAGED] == [told]


@pytest.fixture
def pieces(tmp_path: Path) -> list[Piece]:
    return pieces_of(verified_capture(tmp_path, roles=("rank-0", "rank-1", "rank-2")))


def damaged(pieces: list[Piece], *wanted: tuple[int, int]) -> bytes:
    """The archive with other digests than those of some sections."""
    return build(
        replace(piece, digest=bytes(32)) if (piece.kind, piece.process) in wanted else piece for piece in pieces
    )


def test_every_damaged_section_is_told(pieces: list[Piece], tmp_path: Path) -> None:
    path = tmp_path / "a.fdry"
    path.write_bytes(damaged(pieces, (Kind.GROUPS, 0), (Kind.BODIES, 2)))
    report = looked_at(path, Level.FULL)
    assert [(problem.code, problem.text.split(" at byte")[0]) for problem in report.problems] == [
        ("archive-section-damaged", "section groups"),
        ("archive-section-damaged", "section bodies"),
    ]
    assert report.graphs == 4, "the process that is whole was looked at"


@pytest.mark.parametrize("level", [Level.FULL, Level.DEEP])
def test_a_process_that_cannot_be_decoded_is_one_problem(pieces: list[Piece], tmp_path: Path, level: Level) -> None:
    path = tmp_path / "a.fdry"
    cut = [
        replace(piece, data=piece.data[:-1], stored=None) if (piece.kind, piece.process) == (Kind.BODIES, 1) else piece
        for piece in pieces
    ]
    path.write_bytes(build(cut))
    report = looked_at(path, level)
    (problem,) = report.problems
    assert (problem.code, problem.place.process) == ("archive-content", "#1")
    assert report.graphs == 8


def test_a_section_of_an_unknown_kind_is_unpacked_too(pieces: list[Piece], tmp_path: Path) -> None:
    path = tmp_path / "a.fdry"
    strange = Piece(4711, 0xFFFFFFFF, b"from the future", flags=0)
    path.write_bytes(build([*pieces, strange]))
    assert looked_at(path, Level.FULL).sound
    path.write_bytes(build([*pieces, replace(strange, digest=bytes(32))]))
    report = looked_at(path, Level.FULL)
    assert [problem.code for problem in report.problems] == ["archive-section-damaged"]
    assert looked_at(path, Level.QUICK).sound, "the quick level does not unpack it"


def test_sections_with_other_content_are_always_an_answer(tmp_path: Path) -> None:
    """Digests that fit, content that was changed at random: a report or an ArchiveError, never anything else."""
    pieces = pieces_of(verified_capture(tmp_path))
    rng = random.Random(5)
    path = tmp_path / "a.fdry"
    found: set[str] = set()
    for _ in range(400):
        at = rng.randrange(len(pieces))
        data = bytearray(pieces[at].data)
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(data))
            digit = chr(data[place]).isdigit() and rng.random() < 0.8
            data[place] = ord(rng.choice("0123456789")) if digit else rng.choice([0, 255, rng.randrange(256)])
        path.write_bytes(build([*pieces[:at], replace(pieces[at], data=bytes(data), stored=None), *pieces[at + 1 :]]))
        try:
            found.update(problem.finding.code for problem in looked_at(path, Level.DEEP).problems)
        except ArchiveError as error:
            found.add(error.code)
    assert {"archive-content", "verify-references", "verify-dangling-count"} <= found
