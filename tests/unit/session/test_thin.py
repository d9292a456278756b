"""Which blobs a thin archive leaves out, and how they are found again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.native_build import embed_kernels
from helpers.spool_writer import SpoolWriter, body, kernel_node

from foundry.compat import library_files
from foundry.errors import MismatchError
from foundry.launch.executable import Executable
from foundry.model import NONE, Capture, LibraryPlace
from foundry.pack import pack
from foundry.session import thin

FATBINS = Path(__file__).parents[2] / "data" / "fatbins"
BUILD_ID = "0123456789abcdef0123456789abcdef01234567"
COMMAND = Executable("/bin/true", ("true",))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embed_kernels(tmp_path_factory.mktemp("thin") / "libkernels.so", FATBINS / "size.fatbin", BUILD_ID)


@pytest.fixture
def capture(tmp_path: Path, built: Path) -> Capture:
    """A graph with a kernel of a fatbin in the library, and one of an image that lies in memory."""
    fatbin = (FATBINS / "size.fatbin").read_bytes()
    spool = SpoolWriter(tmp_path / "spool")
    spool.driver()
    spool.device()
    spool.context(0xC0)
    spool.image(0x10, fatbin, bytes(32), 2, provenance=str(built))
    spool.image(0x11, b"made while it ran" * 4, bytes([1]) * 32, 1, provenance="")
    spool.kernel(0x77, 0x10, "scale", [])
    spool.kernel(0x78, 0x11, "made", [])
    spool.graph(0x90, body([kernel_node(0x77, b""), kernel_node(0x78, b"")]), ("set", "key"), 0xC0)
    packed, _ = pack(spool.write())
    process = packed.processes[0]
    image = replace(process.images[0], build_id=BUILD_ID, offset=built.read_bytes().index(fatbin))
    return replace(packed, processes=(replace(process, images=(image, *process.images[1:])),))


def libraries(folder: Path) -> thin.Libraries:
    return thin.Libraries(COMMAND, {"LD_LIBRARY_PATH": str(folder)})


def test_a_cubin_out_of_a_librarys_fatbin_is_left_out(capture: Capture, built: Path) -> None:
    image = capture.processes[0].images[0]
    assert image.unpacked
    found = thin.leave_out(capture, libraries(built.parent))
    expected = LibraryPlace("libkernels.so", BUILD_ID, image.offset, image.size, 90)
    assert found == replace(capture, outside={image.blob: expected})
    assert libraries(built.parent).require(expected) == (FATBINS / "sm_90.cubin").read_bytes()
    assert thin.note(found) == (
        f"thin: 1 kernel image of {len(capture.blobs[image.blob]) / 1000:.1f} kB left out, "
        "which must be in `libkernels.so` on a restore"
    )
    assert thin.note(capture) == ""


def test_what_is_not_the_same_here_stays(capture: Capture, built: Path, tmp_path: Path) -> None:
    def changed(**fields: object) -> Capture:
        process = capture.processes[0]
        images = (replace(process.images[0], **fields), *process.images[1:])  # type: ignore[arg-type]
        return replace(capture, processes=(replace(process, images=images),))

    for odd in (
        changed(build_id="ff" * 20),
        changed(build_id=""),
        changed(provenance="libother.so"),
        changed(provenance=""),
        changed(offset=capture.processes[0].images[0].offset + 8),
        changed(offset=1 << 40),
        changed(size=100),
        changed(unpacked=False),
        replace(capture, blobs=(capture.blobs[0] + b"!", *capture.blobs[1:])),
    ):
        assert thin.leave_out(odd, libraries(built.parent)).outside == {}
    assert thin.leave_out(capture, libraries(tmp_path)).outside == {}


def test_of_a_linked_image_what_it_was_linked_from_is_left_out(capture: Capture, built: Path) -> None:
    process = capture.processes[0]
    blobs = (*capture.blobs, (FATBINS / "size.fatbin").read_bytes())
    image = replace(process.images[0], original=len(blobs) - 1, unpacked=False)
    assert image.blob != NONE
    linked = replace(capture, blobs=blobs, processes=(replace(process, images=(image, *process.images[1:])),))
    places = thin.leave_out(linked, libraries(built.parent)).outside
    assert [(index, place.architecture) for index, place in places.items()] == [(image.original, 0)]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (LibraryPlace("libother.so", BUILD_ID, 0, 64, 0), "`libother.so` with the build id 0123"),
        (LibraryPlace("libkernels.so", "ff" * 20, 0, 64, 0), f"is not found here; there is one with {BUILD_ID}"),
        (LibraryPlace("libkernels.so", BUILD_ID, 0, 64, 90), "has no kernel image at byte 0"),
        (LibraryPlace("libkernels.so", BUILD_ID, 1 << 40, 64, 0), "has no kernel image at byte 1099511627776"),
    ],
)
def test_what_is_missing_is_named(built: Path, place: LibraryPlace, text: str) -> None:
    with pytest.raises(MismatchError, match=text) as caught:
        libraries(built.parent).require(place)
    assert (caught.value.code, caught.value.exit_code) == ("library-missing", 5)
    assert place.build_id in str(caught.value)


def test_a_library_is_found_where_the_loader_would_look(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = LibraryPlace("libkernels.so", BUILD_ID, 0, 64, 0)
    head = built.read_bytes()[:64]

    def found(program: Path, environment: dict[str, str]) -> bytes | None:
        return thin.Libraries(Executable(str(program), ("program",)), environment).read(place)

    away = tmp_path / "program"
    away.write_bytes(b"\x7fELF")
    assert found(away, {}) is None
    assert found(away, {"LD_LIBRARY_PATH": f"{tmp_path / 'none'}:{built.parent}"}) == head
    assert found(built.with_name("program"), {}) == head
    (tmp_path / "settings").mkdir()
    monkeypatch.setattr(library_files, "LOADER_SETTINGS", tmp_path / "settings")
    (tmp_path / "settings" / "kernels.conf").write_text(f"# kernels\n{built.parent}\n")
    assert found(away, {}) == head
    python = tmp_path / "venv" / "bin" / "python3"
    package = tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / "nvidia" / "kernels" / "lib"
    for folder in (python.parent, package):
        folder.mkdir(parents=True)
    python.write_bytes(b"\x7fELF")
    (tmp_path / "settings" / "kernels.conf").unlink()
    assert found(python, {}) is None
    (package / "libkernels.so").write_bytes(built.read_bytes())
    assert found(python, {}) == head
