"""`foundry image`, and what tells a build where foundry's files are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.source import ROOT

import foundry
from foundry import archive, image, native
from foundry.errors import FoundryError

VECTORS = ROOT / "format_spec" / "vectors" / "v1"
SMALL = VECTORS / "valid" / "small.fdry"


def roles(path: Path) -> list[str]:
    return [process.role for process in archive.read(path).processes]


def test_the_image_is_the_one_that_a_restore_would_map(foundry_command: CommandLine, tmp_path: Path) -> None:
    (role,) = roles(SMALL)
    result = foundry_command.run("image", SMALL, "-o", "small.image")
    made = foundry_command.work / "small.image"
    image.build(archive.read(SMALL), role, tmp_path / "other", archive.summary(SMALL).capture_id, trim=False)
    assert made.read_bytes() == (tmp_path / "other").read_bytes()
    (process,) = archive.read(SMALL).processes
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == (
        f"foundry: wrote small.image: {len(process.graphs)} graphs of `{role}`, {made.stat().st_size} bytes\n"
    )


def test_it_says_so_to_machines(foundry_command: CommandLine) -> None:
    result = foundry_command.run("image", "--json", SMALL, "-o", "small.image")
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert document == {
        "image": "small.image",
        "process": roles(SMALL)[0],
        "graphs": document["graphs"],
        "bytes": (foundry_command.work / "small.image").stat().st_size,
        "abi": native.ABI,
    }


def test_nothing_is_replaced_unless_that_is_wanted(foundry_command: CommandLine) -> None:
    there = foundry_command.work / "there"
    there.write_text("x")
    refused = foundry_command.run("image", SMALL, "-o", "there")
    assert (refused.returncode, there.read_text()) == (125, "x")
    assert refused.stderr == "foundry: error: `there` exists\n\nhint: `--force` replaces it\n"
    assert foundry_command.run("image", SMALL, "-q", "-f", "-o", "there").stderr == ""
    assert there.read_bytes()[:8] == b"FDRYIMG1"


def test_of_several_processes_one_is_named(foundry_command: CommandLine) -> None:
    several = next(path for path in sorted((VECTORS / "valid").glob("*.fdry")) if several_roles(path))
    first, second, *_ = roles(several)
    refused = foundry_command.run("image", several, "-o", "a")
    assert refused.returncode == 2
    assert f"`{first}`, `{second}`" in refused.stderr
    assert "`--process`" in refused.stderr
    assert foundry_command.run("image", several, "-o", "a", "--process", second).returncode == 0
    unknown = foundry_command.run("image", several, "-o", "b", "--process", "nobody")
    assert unknown.returncode == 1
    assert "has no process `nobody`; it has" in unknown.stderr
    assert not (foundry_command.work / "b").exists()


def several_roles(path: Path) -> bool:
    try:
        return len(roles(path)) > 1
    except FoundryError:
        return False


@pytest.mark.parametrize(
    ("file", "target", "code", "status"),
    [
        ("nothing.fdry", "a", "archive-not-found", 1),
        (VECTORS / "invalid" / "newer-major.fdry", "a", "archive-too-new", 4),
        (VECTORS / "invalid" / "header-only.fdry", "a", "archive-truncated", 1),
        (SMALL, "folder", "usage", 2),
        (SMALL, "no/where", "failed", 125),
    ],
)
def test_what_cannot_be_done_is_told_apart(
    foundry_command: CommandLine, file: object, target: str, code: str, status: int
) -> None:
    (foundry_command.work / "folder").mkdir()
    result = foundry_command.run("image", "--json", file, "-o", target)
    error = json.loads(result.stdout)["error"]
    assert (result.returncode, error["code"], result.stderr) == (status, code, "")
    assert [path.name for path in foundry_command.work.iterdir()] == ["folder"]


def test_a_build_is_told_where_things_are(foundry_command: CommandLine, libraries: Path) -> None:
    assert foundry_command.run("--include").stdout == foundry.get_include() + "\n"
    assert (Path(foundry.get_include()) / "foundry.h").is_file()
    missing = foundry_command.run("--library")
    assert missing.returncode == 125
    assert missing.stderr.startswith("foundry: error: the restore engine to link is missing: no file `")
    (libraries / "libfoundry_restore.a").touch()
    assert foundry_command.run("--library").stdout == f"{libraries}/libfoundry_restore.a\n"
    (libraries / "libfoundry_restore.a").unlink()


def test_a_thin_archive_needs_what_was_left_out(foundry_command: CommandLine) -> None:
    shutil.copy(VECTORS / "valid" / "thin.fdry", foundry_command.work)
    result = foundry_command.run("image", "thin.fdry", "-o", "a")
    assert result.returncode == 1
    assert "it lies in the library `libkernels.so`" in result.stderr
    assert not (foundry_command.work / "a").exists()
