"""The library files of a process: in order, once, without their folders."""

from __future__ import annotations

from pathlib import Path

from helpers.packing import start

from foundry import archive
from foundry.model import Library
from foundry.pack import pack

LIBRARIES = (
    ("/opt/b/libb.so", "0b"),
    ("/usr/lib/liba.so.1", "aa01"),
    ("/opt/a/libb.so", "0a"),
    ("/opt/a/libb.so.2 (deleted)", ""),
)


def libraries(folder: Path, *told: tuple[tuple[str, str], ...]) -> tuple[Library, ...]:
    spool = start(folder)
    for files in told:
        spool.libraries(*files)
    spool.write()
    capture, _ = pack(folder, origin=lambda path: ("b", "1.0") if path.startswith("/opt/a") else ("", ""))
    return capture.processes[0].libraries


def test_they_stand_in_order_whenever_they_were_told(tmp_path: Path) -> None:
    expected = (
        Library("liba.so.1", "aa01"),
        Library("libb.so", "0a", "b", "1.0"),
        Library("libb.so", "0b"),
        Library("libb.so.2 (deleted)", "", "b", "1.0"),
    )
    assert libraries(tmp_path / "one", LIBRARIES) == expected
    assert libraries(tmp_path / "two", LIBRARIES[2:], LIBRARIES[:2], LIBRARIES[:1]) == expected


def test_equal_files_in_two_folders_are_one(tmp_path: Path) -> None:
    assert libraries(tmp_path / "s", (("/x/libc.so", "01"), ("/y/libc.so", "01"))) == (Library("libc.so", "01"),)


def test_odd_names_and_build_ids_still_make_an_archive(tmp_path: Path) -> None:
    odd = (("/x/" + "n" * 400, "zz"), ("/", ""), ("/x/..", ""), ("/x/a\0b", "0"), ("/x/\udcff\u00e9\n", "ab" * 65))
    spool = start(tmp_path / "s")
    spool.frame(5, spool_payload(odd))
    spool.write()
    capture, _ = pack(tmp_path / "s")
    found = capture.processes[0].libraries
    assert {library.build_id for library in found} == {""}
    assert {library.name for library in found} >= {"n" * 255, "ab"}
    archive.write(capture, tmp_path / "a.fdry")
    assert archive.read(tmp_path / "a.fdry").processes[0].libraries == found


def spool_payload(files: tuple[tuple[str, str], ...]) -> bytes:
    def text(value: str) -> bytes:
        data = value.encode("utf-8", "surrogateescape")
        return len(data).to_bytes(4, "little") + data

    return len(files).to_bytes(4, "little") + b"".join(text(path) + text(build_id) for path, build_id in files)


def test_no_folder_of_the_machine_is_kept(tmp_path: Path) -> None:
    capture_bytes = repr(libraries(tmp_path / "s", LIBRARIES))
    assert "/opt" not in capture_bytes and "/usr" not in capture_bytes
