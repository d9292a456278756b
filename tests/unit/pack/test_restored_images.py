"""What a restore tells of its images: the engine's copy is one of the program's loads, whichever comes first."""

from __future__ import annotations

from pathlib import Path

from helpers.packing import BASE, IMAGE, packed, scale, start
from helpers.spool_writer import SpoolWriter, body

from foundry.model import Format, Process

KEY = b"k" * 32


def loaded(process: Process) -> list[tuple[bytes, int, bool]]:
    return [(image.key, image.instance, image.in_graphs) for image in process.images]


def engine(spool: SpoolWriter, handle: int, instance: int) -> None:
    spool.image_restored(handle, instance)
    spool.image(handle, IMAGE, KEY)


def use(spool: SpoolWriter, kernel: int, handle: int, execution: int) -> None:
    spool.kernel(kernel, handle, "scale", [(0, 8), (8, 4)])
    spool.graph(execution, body([scale(BASE, kernel)]), ("set", str(execution)))


def test_the_engines_copy_does_not_count_as_a_load(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    engine(spool, 0x20, 1)
    use(spool, 0x78, 0x20, 0x90)
    spool.image(0x30, IMAGE, KEY)  # the program's loads 0, and 1, which gets the engine's handle
    spool.image(0x20, IMAGE, KEY)
    spool.image(0x40, IMAGE, KEY)
    use(spool, 0x79, 0x40, 0x91)
    process, _ = packed(spool)
    assert loaded(process) == [(KEY, 1, True), (KEY, 2, True)]


def test_two_handles_of_one_load_are_one_image(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    spool.image(0x20, IMAGE, KEY)
    engine(spool, 0x30, 0)
    use(spool, 0x78, 0x20, 0x90)
    use(spool, 0x79, 0x30, 0x91)
    process, _ = packed(spool)
    assert loaded(process) == [(KEY, 0, True)]
    assert len(process.kernels) == 1


def test_the_form_is_that_of_what_was_told_first(tmp_path: Path) -> None:
    spool = start(tmp_path / "s")
    engine(spool, 0x20, 0)
    spool.image(0x20, IMAGE, KEY, form=Format.UNKNOWN, provenance="/elsewhere")
    use(spool, 0x78, 0x20, 0x90)
    process, _ = packed(spool)
    (image,) = process.images
    assert (image.format, image.provenance) == (Format.SIMULATED, "libkernels.so")
