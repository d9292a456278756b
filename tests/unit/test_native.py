from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.commandline import build_stand_in

from foundry import native
from foundry.errors import NativeLibraryError

HEADERS = Path(__file__).parents[2] / "foundry" / "native"


def test_the_development_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOUNDRY_LIBRARY_DIR", str(tmp_path))
    assert native.library_directory() == tmp_path
    monkeypatch.delenv("FOUNDRY_LIBRARY_DIR")
    assert native.library_directory() == Path(native.__file__).parent / "_lib"


def test_the_interface_is_read_through_ctypes(tmp_path: Path) -> None:
    hook = native.Hook(build_stand_in(tmp_path) / native.HOOK_NAME)
    assert hook.interface_version() == 1
    assert hook.table() == [["init", "cuInit", "2000", "record", "own"]]
    assert hook.image_fault(tmp_path / "none") == "not an image"
    (tmp_path / "x.image").write_bytes(b"FDRYIMG1")
    assert hook.image_fault(tmp_path / "x.image") == ""


def test_what_is_no_hook_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(b"no library")
    for path in (tmp_path / "x.so", tmp_path / "none.so"):
        with pytest.raises(NativeLibraryError, match="is not a usable hook"):
            native.Hook(path)


def test_the_abi_is_that_of_the_header() -> None:
    header = (HEADERS / "abi" / "spool_format.h").read_text()
    found = re.search(r"#define FOUNDRY_ABI (\d+)u", header)
    assert found
    assert int(found[1]) == native.ABI
