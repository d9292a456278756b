from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from foundry.compat.library_files import LibraryFiles, build_id

WANTED = "0123456789abcdef0123456789abcdef01234567"


def library(path: Path, identity: str = WANTED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(path), f"-Wl,--build-id=0x{identity}", "/dev/null"]
    subprocess.run(words, check=True)
    return path


def test_a_build_id_is_read(tmp_path: Path) -> None:
    assert build_id(library(tmp_path / "liba.so")) == WANTED


@pytest.mark.parametrize("size", [0, 3, 63, 64, 100, 300])
def test_a_cut_file_has_none(tmp_path: Path, size: int) -> None:
    path = library(tmp_path / "liba.so")
    path.write_bytes(path.read_bytes()[:size])
    assert build_id(path) == ""


def test_what_is_no_library_has_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\x7fELF but not really, though it is long enough to hold a header" * 2)
    assert build_id(tmp_path / "text") == build_id(tmp_path) == build_id(tmp_path / "none") == ""


@pytest.mark.parametrize("place", ["nvidia/cu13/lib", "torch/lib", "numpy.libs", "thing/lib", "thing"])
def test_libraries_in_packages_are_found(tmp_path: Path, place: str) -> None:
    library(tmp_path / place / "liba.so.1")
    files = LibraryFiles([tmp_path], {})
    assert files.build_id("liba.so.1", WANTED) == WANTED
    assert files.build_id("liba.so.1", "ff") == WANTED, "another build of it"
    assert files.build_id("libb.so.1", WANTED) is None


def test_the_wanted_one_counts_wherever_it_is(tmp_path: Path) -> None:
    library(tmp_path / "1" / "liba.so", "aa" * 20)
    library(tmp_path / "2" / "liba.so")
    files = LibraryFiles([], {"LD_LIBRARY_PATH": f"{tmp_path}/1:{tmp_path}/2:"})
    assert files.build_id("liba.so", WANTED) == WANTED
    assert files.build_id("liba.so", "ff") == "aa" * 20


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../liba.so", "a/b"])
def test_a_name_with_a_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").mkdir()
    library(tmp_path / "liba.so")
    assert LibraryFiles([], {"LD_LIBRARY_PATH": str(tmp_path / "x")}).build_id(name, WANTED) is None
