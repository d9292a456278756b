"""Files that are no archives, or that change under the reader; and mutants, which are never more than refused."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.archive_builder import build, pieces_of
from helpers.varied import varied_capture

from foundry import archive
from foundry.archive.container import Container
from foundry.archive.layout import TEXT_KINDS, Kind
from foundry.errors import ArchiveError, ArchiveNotFoundError
from foundry.findings import ARCHIVE_CONTENT, ARCHIVE_NOT_ONE, ARCHIVE_TRUNCATED, ARCHIVE_UNREADABLE
from foundry.image.assemble import build_image


def code_of(path: Path) -> str:
    with pytest.raises(ArchiveError) as caught:
        archive.read(path)
    assert str(path) in str(caught.value) and not str(caught.value).endswith(".")
    return caught.value.code


def test_what_is_no_file_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ArchiveNotFoundError):
        archive.read(tmp_path / "missing")
    with pytest.raises(ArchiveNotFoundError):
        archive.summary(tmp_path / "missing" / "x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert code_of(tmp_path / "pipe") == ARCHIVE_NOT_ONE
    assert code_of(tmp_path / "folder") == ARCHIVE_NOT_ONE
    assert code_of(tmp_path / ("x" * 300)) == ARCHIVE_UNREADABLE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"secret")
    path.chmod(0)
    assert code_of(path) == ARCHIVE_UNREADABLE


def test_a_file_that_shrinks_while_it_is_read_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "x.fdry"
    archive.write(varied_capture(random.Random(3)), path)
    with Container(path) as container:
        os.truncate(path, 40)
        with pytest.raises(ArchiveError) as caught:
            container.raw(container.sections[-1])
    assert caught.value.code == ARCHIVE_TRUNCATED


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no archive")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(ArchiveError):
            archive.read(tmp_path / "x")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def survives(path: Path) -> bool:
    """Read, and use what is read; anything but an ArchiveError is a failure of the reader."""
    try:
        capture = archive.read(path)
        archive.summary(path)
    except ArchiveError:
        return False
    for process in capture.processes:
        build_image(capture, process.role, path.with_suffix(".image"), bytes(32), trim=False)
    return True


def test_changed_bytes_anywhere_are_refused_or_harmless(tmp_path: Path) -> None:
    rng = random.Random(2)
    path = tmp_path / "x.fdry"
    wholes = []
    for seed in (1, 5, 9):
        archive.write(varied_capture(random.Random(seed)), path, force=True)
        wholes.append(path.read_bytes())
    for _ in range(2000):
        data = bytearray(rng.choice(wholes))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            data[at] = rng.choice([0, 255, data[at] ^ 1 << rng.randrange(8)])
        path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        survives(path)


def mutated_text(rng: random.Random, data: bytes) -> bytes:
    """Change one value somewhere in the JSON."""
    value = json.loads(data)
    at = value
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return data
        key = rng.choice(keys)
        if isinstance(at[key], dict | list) and rng.random() < 0.9:
            at = at[key]
            continue
        at[key] = rng.choice([0, 1, 5, -1, 2**32 - 1, 2**32, 2**53, "", "x", "../x", None, True, [], {}, [[1, 2]]])
        if isinstance(at, dict) and rng.random() < 0.2:
            del at[key]
        return json.dumps(value).encode()


def test_changed_contents_with_right_digests_are_refused_or_usable(tmp_path: Path) -> None:
    rng = random.Random(3)
    path = tmp_path / "x.fdry"
    captures = [pieces_of(varied_capture(random.Random(seed))) for seed in (1, 5, 9, 12)]
    accepted = 0
    for _ in range(1500):
        pieces = list(rng.choice(captures))
        number = rng.randrange(len(pieces))
        data = pieces[number].data
        if pieces[number].kind in TEXT_KINDS:
            data = mutated_text(rng, data)
        elif data:
            changed = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                changed[rng.randrange(len(changed))] = rng.choice([0, 1, 2, 255, rng.randrange(256)])
            data = bytes(changed[: rng.choice([len(changed), len(changed), rng.randrange(len(changed))])])
        pieces[number] = replace(pieces[number], data=data, stored=None)
        path.write_bytes(build(pieces))
        accepted += survives(path)
    assert 0 < accepted < 1500


def test_contents_that_do_not_fit_are_worded(tmp_path: Path) -> None:
    capture = varied_capture(random.Random(5))
    pieces = pieces_of(capture)
    at = next(index for index, piece in enumerate(pieces) if piece.kind == Kind.PROCESS)
    value = json.loads(pieces[at].data)
    value["driver_version"] = "13.0"
    pieces[at] = replace(pieces[at], data=json.dumps(value).encode(), stored=None)
    path = tmp_path / "x.fdry"
    path.write_bytes(build(pieces))
    with pytest.raises(ArchiveError, match="`driver_version` is not an integer from 0 to 4294967295") as caught:
        archive.read(path)
    assert caught.value.code == ARCHIVE_CONTENT
