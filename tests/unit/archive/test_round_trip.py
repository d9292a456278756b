"""What was written is read back, whatever it is."""

from __future__ import annotations

import random
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.archive_builder import build, pieces_of
from helpers.varied import thinned, varied_capture
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundry import archive
from foundry.archive import layout
from foundry.archive.writer import ArchiveStream, blob_cuts
from foundry.findings import Finding, Severity
from foundry.model import Capture, File, LibraryPlace


def stored(capture: Capture, folder: Path) -> tuple[str, Capture]:
    path = folder / "x.fdry"
    identity = archive.write(capture, path, force=True)
    return identity, archive.read(path)


@given(rng=st.randoms(use_true_random=False))
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_capture_comes_back(rng: random.Random, tmp_path_factory: pytest.TempPathFactory) -> None:
    capture = varied_capture(rng)
    assert stored(capture, tmp_path_factory.getbasetemp())[1] == capture


@given(rng=st.randoms(use_true_random=False))
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_thin_capture_comes_back(rng: random.Random, tmp_path_factory: pytest.TempPathFactory) -> None:
    capture = thinned(varied_capture(rng), rng)
    path = tmp_path_factory.getbasetemp() / "thin.fdry"
    archive.write(capture, path, force=True)
    # Places of two blobs may be equal here, so each is asked for in its turn.
    blobs = iter([(place, capture.blobs[index]) for index, place in capture.outside.items()])

    def find(place: LibraryPlace) -> bytes:
        expected, data = next(blobs)
        assert place == expected
        return data

    assert archive.read(path, find) == capture
    brief = archive.summary(path)
    assert (brief.thin, brief.outside) == (bool(capture.outside), len(capture.outside))
    assert brief.packages == capture.packages
    stored_bytes = sum(section.raw for section in brief.sections if section.kind == "blobs")
    assert stored_bytes == sum(len(blob) for index, blob in enumerate(capture.blobs) if index not in capture.outside)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(
    context=st.dictionaries(texts, texts, max_size=4),
    blobs=st.lists(st.binary(max_size=60), max_size=5),
    found=st.lists(st.builds(Finding, texts, st.sampled_from(Severity), texts, texts), max_size=3),
)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_texts_blobs_and_findings_come_back(
    context: dict[str, str], blobs: list[bytes], found: list[Finding], tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = tuple(File("triton", f"{index}", 0o644, index) for index in range(len(blobs)))
    capture = Capture((), tuple(blobs), context, files, tuple(found))
    assert stored(capture, tmp_path_factory.getbasetemp())[1] == capture


def test_a_lone_surrogate_in_an_argument_comes_back(tmp_path: Path) -> None:
    capture = Capture((), (), {"argv": "caf\udce9"})
    assert stored(capture, tmp_path)[1] == capture


def test_equal_captures_have_equal_ids_and_bytes(tmp_path: Path) -> None:
    first, second = (varied_capture(random.Random(5)) for _ in range(2))
    assert b"".join(ArchiveStream(first)) == b"".join(ArchiveStream(second))
    assert stored(first, tmp_path)[0] != stored(varied_capture(random.Random(6)), tmp_path)[0]


def test_the_id_does_not_depend_on_compression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = replace(varied_capture(random.Random(5)), blobs=(b"a" * 5000,), files=(), processes=())
    first = stored(capture, tmp_path)[0]
    monkeypatch.setattr("foundry.archive.writer._TEXT_LEVEL", 1)
    monkeypatch.setattr("foundry.archive.writer._BLOB_LEVEL", 1)
    assert stored(capture, tmp_path)[0] == first


def timed(*times: dict[str, int]) -> Capture:
    """The first varied capture of that many processes, with these times."""
    seeds = (varied_capture(random.Random(seed)) for seed in range(100))
    capture = next(found for found in seeds if len(found.processes) == len(times))
    both = zip(capture.processes, times, strict=True)
    return replace(capture, processes=tuple(replace(process, spent=spent) for process, spent in both))


def test_times_come_back_and_do_not_change_the_id(tmp_path: Path) -> None:
    captures = [timed({}, {}), timed({"a_ns": 1}, {}), timed({"a_ns": 2, "größe_ns": 0}, {"b_ns": (1 << 64) - 1})]
    found = [stored(capture, tmp_path) for capture in captures]
    assert [capture for _, capture in found] == captures
    assert len({identity for identity, _ in found}) == 1
    assert captures[0] != captures[1]


def test_the_timeline_is_there_only_where_there_are_times(tmp_path: Path) -> None:
    for times, count in (({}, 0), ({"a_ns": 1}, 1)):
        stored(timed(times), tmp_path)
        sections = archive.summary(tmp_path / "x.fdry").sections
        found = [section for section in sections if section.kind == "timeline"]
        assert [(section.process, section.critical) for section in found] == [(None, False)] * count


def test_without_its_timeline_an_archive_is_the_same_capture(tmp_path: Path) -> None:
    path = tmp_path / "x.fdry"
    identity, _ = stored(timed({"a_ns": 1}, {}), tmp_path)
    path.write_bytes(build(piece for piece in pieces_of(archive.read(path)) if piece.kind != layout.Kind.TIMELINE))
    assert archive.read(path) == timed({}, {})
    assert archive.summary(path).capture_id == identity


def test_blobs_are_cut_at_fixed_places() -> None:
    cut = layout.BLOB_CUT
    blobs = (b"a" * 10, b"b" * (2 * cut), b"", b"c" * (cut - 10), b"d")
    parts = list(blob_cuts(blobs))
    assert [len(part) for part in parts] == [cut, cut, cut, 1]
    assert b"".join(parts) == b"".join(blobs)
    assert list(blob_cuts(())) == []


def test_blobs_over_several_sections_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "BLOB_CUT", 100)
    capture = Capture((), (b"x" * 250, b"", b"y" * 70, bytes(range(80))))
    assert stored(capture, tmp_path)[1] == capture
    assert sum(section.kind == "blobs" for section in archive.summary(tmp_path / "x.fdry").sections) == 4


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    stored(Capture((), ()), tmp_path)
    assert stat.S_IMODE((tmp_path / "x.fdry").stat().st_mode) == 0o600


def test_the_summary_tells_what_the_capture_holds(tmp_path: Path) -> None:
    capture = varied_capture(random.Random(3))
    identity, _ = stored(capture, tmp_path)
    brief = archive.summary(tmp_path / "x.fdry")
    assert brief.capture_id == identity
    assert (brief.major, brief.minor) == (layout.MAJOR, layout.MINOR)
    assert brief.file_size == (tmp_path / "x.fdry").stat().st_size
    assert [process.role for process in brief.processes] == [process.role for process in capture.processes]
    assert brief.graphs == sum(len(process.graphs) for process in capture.processes)
    assert sum(brief.findings.values()) == len(capture.findings)
    assert brief.context == capture.context


def test_the_summary_costs_neither_numpy_nor_the_model(tmp_path: Path) -> None:
    stored(varied_capture(random.Random(3)), tmp_path)
    code = (
        "import sys, pathlib, foundry.archive as a; a.summary(pathlib.Path(sys.argv[1]));"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'foundry.model')))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.fdry")], check=False).returncode == 0


def test_the_head_costs_no_numpy(tmp_path: Path) -> None:
    """It is imported while other cores unpack what the head tells of."""
    stored(varied_capture(random.Random(3)), tmp_path)
    code = (
        "import sys, pathlib, foundry.archive as a\n"
        "with a.open_archive(pathlib.Path(sys.argv[1])) as opened: opened.head\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.fdry")], check=False).returncode == 0


def test_a_small_archive_is_read_without_what_only_large_ones_need(tmp_path: Path) -> None:
    stored(varied_capture(random.Random(3)), tmp_path)
    code = (
        "import sys, pathlib, foundry.archive as a, foundry.image as i; path = pathlib.Path(sys.argv[1])\n"
        "capture = a.read(path)\n"
        "for process in capture.processes: i.build(capture, process.role, path.with_suffix('.image'), '00' * 32)\n"
        "print(*(name for name in ('concurrent.futures', 'logging', 'numpy.ma', 'tempfile') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.fdry")], check=True, stdout=subprocess.PIPE)
    assert done.stdout.strip() == b""


def test_an_unsound_capture_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not safe"):
        archive.write(Capture((), (b"",), files=(File("triton", "../x", 0o600, 0),)), tmp_path / "x.fdry")
    assert list(tmp_path.iterdir()) == []
