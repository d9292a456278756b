"""Which images of a restore image have one with fewer kernels beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.image_reader import ImageFile
from helpers.spool_writer import SpoolWriter, body, kernel_node
from unit.binary.test_fatbin import container, entry

from foundry import image
from foundry.binary.cubin import Cubin
from foundry.binary.trim import without_others
from foundry.model import NONE
from foundry.pack import pack

CUBINS = Path(__file__).parents[2] / "data" / "cubins"
SEVERAL, VARIABLES = ((CUBINS / f"{name}_90.cubin").read_bytes() for name in ("several", "variables"))
KEY = bytes(range(32))
PTX = b".version 9.0\n.target sm_90\n.visible .entry _Z5callsPf() { ret; }\n\0"
CALLS, CHECKS, READS = "_Z5callsPf", "_Z6checksPii", "_Z5readsPfi"
LAYOUTS = {
    name: layout
    for cubin in (SEVERAL, VARIABLES)
    for name in Cubin(cubin).kernels
    if (layout := Cubin(cubin).layout(name)) is not None
}


def built(
    folder: Path, images: Callable[[SpoolWriter], object], uses: list[tuple[int, str]], *, trim: bool = True
) -> ImageFile:
    """Give the restore image of a graph that uses kernels of images by their handles."""
    spool = SpoolWriter(folder / "spool")
    spool.driver()
    spool.device()
    spool.context(0xC0)
    images(spool)
    nodes = []
    for number, (handle, name) in enumerate(uses):
        layout = LAYOUTS[name]
        spool.kernel(0x700 + number, handle, name, list(layout))
        nodes.append(kernel_node(0x700 + number, bytes(sum(layout[-1]))))
    spool.graph(0x90, body(nodes), ("decode", "1"), 0xC0)
    capture, _ = pack(spool.write())
    image.build(capture, "python-0", folder / "x.image", "00" * 32, trim=trim)
    return ImageFile(folder / "x.image")


def rows(file: ImageFile) -> list[tuple[bytes, int, int]]:
    return [(file.blob(row["blob"]), int(row["instance"]), int(row["whole"])) for row in file.images]


def test_there_is_none_unless_asked_for(tmp_path: Path) -> None:
    file = built(
        tmp_path, lambda spool: spool.image(0x10, SEVERAL, KEY, api=1, context=0xC0), [(0x10, CALLS)], trim=False
    )
    assert rows(file) == [(SEVERAL, 0, NONE)]
    assert file.kernels["image"].tolist() == [0]


def test_one_with_the_kernels_of_graphs_stands_beside_the_whole_image(tmp_path: Path) -> None:
    file = built(
        tmp_path, lambda spool: spool.image(0x10, SEVERAL, KEY, api=1, context=0xC0), [(0x10, CHECKS), (0x10, CALLS)]
    )
    assert rows(file) == [(SEVERAL, 0, NONE), (without_others(SEVERAL, [CALLS, CHECKS]), 0, 0)]
    assert file.kernels["image"].tolist() == [1, 1]
    for field in ("key", "api", "instance", "device", "provenance", "option_count"):
        assert file.images[0][field].tolist() == file.images[1][field].tolist()


def test_two_loads_share_what_they_need_alike(tmp_path: Path) -> None:
    def images(spool: SpoolWriter) -> None:
        for handle in (0x10, 0x11, 0x12):
            spool.image(handle, SEVERAL, KEY)

    file = built(tmp_path, images, [(0x10, CALLS), (0x11, CALLS), (0x12, CHECKS)])
    less, other = without_others(SEVERAL, [CALLS]), without_others(SEVERAL, [CHECKS])
    whole = [(SEVERAL, number, NONE) for number in range(3)]
    assert rows(file) == [*whole, (less, 0, 0), (less, 1, 1), (other, 2, 2)]
    assert len(file.blobs) == 3


def test_an_image_whose_kernels_are_all_used_stays(tmp_path: Path) -> None:
    uses = [(0x10, name) for name in sorted(Cubin(SEVERAL).kernels)]
    assert rows(built(tmp_path, lambda spool: spool.image(0x10, SEVERAL, KEY), uses)) == [(SEVERAL, 0, NONE)]


def with_options(spool: SpoolWriter) -> None:
    spool.image(0x10, SEVERAL, KEY, options=[(7, 4)])


def test_what_has_options_stays_whole(tmp_path: Path) -> None:
    assert rows(built(tmp_path, with_options, [(0x10, CALLS)])) == [(SEVERAL, 0, NONE)]


@pytest.mark.parametrize("data", [PTX, container(entry(SEVERAL, 80), entry(PTX, 90, kind=1))], ids=["text", "fatbin"])
def test_what_the_driver_compiles_stays_whole(tmp_path: Path, data: bytes) -> None:
    form = 3 if data == PTX else 2
    file = built(tmp_path, lambda spool: spool.image(0x10, data, KEY, form), [(0x10, CALLS)])
    assert rows(file) == [(data, 0, NONE)]


def test_what_has_variables_stays_whole(tmp_path: Path) -> None:
    file = built(tmp_path, lambda spool: spool.image(0x10, VARIABLES, KEY), [(0x10, READS)])
    assert rows(file) == [(VARIABLES, 0, NONE)]
