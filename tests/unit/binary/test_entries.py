"""What is found in kernel images of each kind, and that damage is always the same error."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from helpers.verified import LAYOUTS, image_of
from unit.binary.test_fatbin import CUBIN as OTHER
from unit.binary.test_fatbin import compressed, container, entry

from foundry.binary.cubin import Cubin
from foundry.binary.entries import entries
from foundry.binary.errors import ForeignImageError, ImageError

DATA = Path(__file__).parents[2] / "data"
DECODE = Path(__file__).parents[2] / "engines" / "kernels" / "decode.ptx"
CUBIN = (DATA / "fatbins" / "sm_90.cubin").read_bytes()
TEXT = b".version 8.0\n.target sm_80\n.visible .entry one() { ret; }\n\0"
WIDE = (DATA / "cubins" / "wide.cubin").read_bytes()


def test_a_cubin_tells_names_layouts_and_the_size_of_all_parameters() -> None:
    found = entries(CUBIN, 90)
    assert "scale" in found
    assert "add" in found
    assert "subtract" not in found
    assert found.layout("scale") == ((0, 8), (8, 4), (12, 4))
    assert found.layout("add") == ((0, 8), (8, 8), (16, 4))
    assert (found.parameter_bytes("scale"), found.parameter_bytes("add")) == (16, 20)
    assert (found.layout("subtract"), found.parameter_bytes("subtract")) == (None, None)


def test_parameters_past_4_kib_stand_in_records_of_their_own() -> None:
    found = entries(WIDE, 90)
    assert found.layout("wide") == ((0, 8), (8, 20000), (20008, 4))
    assert found.parameter_bytes("wide") == 20012


@pytest.mark.parametrize("mode", ["none", "speed", "size", "default"])
def test_a_fatbin_is_its_cubin_for_the_gpu(mode: str) -> None:
    data = (DATA / "fatbins" / f"{mode}.fatbin").read_bytes()
    try:
        found = entries(data, 90)
    except ForeignImageError as error:
        assert "older scheme" in str(error)
        return
    assert found.layout("add") == ((0, 8), (8, 8), (16, 4))


def test_a_fatbin_for_other_gpus_is_foreign_and_not_damaged() -> None:
    with pytest.raises(ForeignImageError, match="no cubins for sm_75"):
        entries((DATA / "fatbins" / "default.fatbin").read_bytes(), 75)


@pytest.mark.parametrize("mode", ["none", "size"])
def test_of_a_fatbin_that_the_driver_compiles_the_text_tells_names(mode: str) -> None:
    found = entries((DATA / "fatbins" / f"{mode}.fatbin").read_bytes(), 100)
    assert [name in found for name in ("scale", "add", "subtract")] == [True, True, False]
    assert found.layout("add") is None


@pytest.mark.parametrize(
    "parts",
    [
        (entry(OTHER, 80), entry(b"\x7fELF", 86), entry(TEXT, 80, kind=1)),
        (entry(TEXT, 80, kind=1), compressed(TEXT, kind=1, architecture=75, raw=7)),
        (entry(TEXT, 90, kind=1),),
    ],
    ids=["machine code that it may run", "text that cannot be unpacked", "text for newer GPUs"],
)
def test_a_fatbin_of_which_it_is_not_known_what_runs_is_foreign(parts: tuple[bytes, ...]) -> None:
    with pytest.raises(ForeignImageError, match="no cubins for sm_89"):
        entries(container(*parts), 89)


def test_a_cut_fatbin_is_damaged() -> None:
    data = (DATA / "fatbins" / "default.fatbin").read_bytes()
    with pytest.raises(ImageError, match=r"cut|passes the end") as caught:
        entries(data[:200], 90)
    assert not isinstance(caught.value, ForeignImageError)


def test_ptx_tells_names_and_no_layouts() -> None:
    found = entries(DECODE.read_bytes() + b"\0", 90)
    assert "matvec" in found
    assert "nothing" not in found
    assert (found.layout("matvec"), found.parameter_bytes("matvec")) == (None, None)


def test_an_entry_in_a_comment_of_ptx_is_none() -> None:
    text = b".version 8.0\n.target sm_90\n// .entry one\n/* .entry\n two */ .visible .entry three(.param .u64 a)"
    assert [name in entries(text, 90) for name in ("one", "two", "three")] == [False, False, True]


def test_an_image_of_the_simulator_tells_layouts() -> None:
    found = entries(image_of(LAYOUTS), 90)
    assert found.layout("fill") == tuple(LAYOUTS["fill"])
    assert "nothing" not in found


@pytest.mark.parametrize(
    "data", [b"", b"image" * 10, b"\x7fELF", bytes(500), b"FDRYSIM1", b"\x93FDRY\r\n\x1a" + bytes(99)]
)
def test_what_is_no_image(data: bytes) -> None:
    with pytest.raises(ImageError):
        entries(data, 90)


def test_an_elf_file_for_a_processor_is_no_cubin() -> None:
    data = bytearray(CUBIN)
    struct.pack_into("<H", data, 18, 62)
    with pytest.raises(ImageError, match="not an ELF file for a GPU"):
        Cubin(bytes(data))


@pytest.mark.parametrize("original", [CUBIN, WIDE, image_of(LAYOUTS)], ids=["small", "wide", "simulated"])
def test_any_damage_is_an_answer_or_an_image_error(original: bytes) -> None:
    rng = random.Random(7)
    for _ in range(600):
        data = bytearray(original)
        for _ in range(rng.randrange(1, 4)):
            at = rng.choice([rng.randrange(64), rng.randrange(len(data)), len(data) - 1 - rng.randrange(2000)])
            data[at % len(data)] = rng.choice([0, 0xFF, rng.randrange(256)])
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        try:
            found = entries(bytes(data), 90)
            for name in ("scale", "add", "wide", "fill"):
                assert isinstance(name in found, bool)
                found.layout(name)
                found.parameter_bytes(name)
        except ImageError as error:
            assert str(error)
