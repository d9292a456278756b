"""Which bytes of its parameters a kernel may read at all, whatever they are."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest
from helpers.machine_code import ARCHITECTURES, KERNELS, cubin, kernel, launched, simulated_image, spans

import foundry
from foundry.binary.cubin import Cubin
from foundry.machine.architectures import ARCHITECTURES as KNOWN
from foundry.machine.code import accesses
from foundry.machine.kernels import code_reads
from foundry.machine.process import image_reads

MAKE_IMAGE = Path(foundry.__file__).resolve().parent / "native" / "sim" / "make_image.py"
HALF_READ = {"padded": [(0, 1), (8, 20), (24, 32)], "handle": [(0, 4), (16, 24)]}
"""Kernels whose constants older code reads as operands of 8 bytes, and newer code by loads that tell their size."""


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("some_slots", [(12, 16), (68, 72), (128, 136)]),
        ("prints", [(0, 4)]),
        ("calls", [(0, 4), (8, 16)]),
        ("nothing", []),
        ("address", None),
    ],
)
def test_what_code_does_not_name_is_not_read(
    architecture: int, name: str, expected: list[tuple[int, int]] | None
) -> None:
    assert spans(kernel(architecture, name).mask) == expected


@pytest.mark.parametrize("name", HALF_READ)
def test_a_load_reads_as_many_bytes_as_it_says(name: str) -> None:
    assert spans(kernel(90, name).mask) == spans(kernel(100, name).mask) == HALF_READ[name]


def test_operands_of_unknown_size_count_as_long_ones() -> None:
    assert spans(kernel(80, "padded").mask) == [(0, 1), (8, 32)]


def test_a_texture_handle_is_an_operand_though_the_disassembler_does_not_say_so() -> None:
    assert spans(kernel(80, "handle").mask) == [(0, 8), (16, 24)]


def test_what_may_be_indexed_is_read_whole() -> None:
    assert kernel(90, "slot_of_group").mask is None
    assert kernel(100, "slot_of_group").mask is None
    assert spans(kernel(90, "any_slot").mask) == [(0, 140)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_instruction_that_is_not_known_may_read_everything(architecture: int) -> None:
    code = cubin(architecture)
    own = Cubin(code).code("some_slots")
    assert own is not None
    for opcode in (0xFFF, 0x001, 0xB83):
        low = int.from_bytes(own[:8], "little") & ~0xFFF | opcode
        changed = code.replace(own, struct.pack("<Q", low) + own[8:])
        assert "some_slots" not in code_reads(changed, ["some_slots"]) or (
            code_reads(changed, ["some_slots"])["some_slots"].mask is None
        )


@pytest.mark.parametrize(("opcode", "high"), [(0xAB9, 1 << 27), (0xA02, 1 << 27), (0xB82, 1 << 14), (0xB82, 7 << 9)])
def test_a_bank_in_a_register_and_a_strange_load_may_read_everything(opcode: int, high: int) -> None:
    word = struct.pack("<QQ", opcode | 0xFF << 24 | (0x210 << 38), high)
    assert accesses(word, KNOWN[90]).everything


@pytest.mark.parametrize("architecture", sorted(KNOWN))
def test_a_word_below_the_parameters_may_be_their_address(architecture: int) -> None:
    known = KNOWN[architecture]
    given = [at for at in range(0, known.base, 4) if known.gives_address(at)]
    assert len(given) > known.base // 4 - 48
    assert not known.gives_address(known.base)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_damage_never_hides_a_read(architecture: int) -> None:
    whole = cubin(architecture)
    expected = code_reads(whole, KERNELS)
    random = np.random.default_rng(architecture)
    for _ in range(200):
        data = bytearray(whole)
        for at in random.integers(0, len(whole), 3).tolist():
            data[at] ^= 1 << int(random.integers(0, 8))
        code_reads(bytes(data), KERNELS)
        code_reads(whole[: int(random.integers(0, len(whole)))], KERNELS)
    assert set(expected) >= {"some_slots", "nothing"}


def test_other_images_may_read_everything() -> None:
    names = {"scale"}
    for data in (b"", b"\x7fELF", b".version 8.0\n.target sm_90\n.visible .entry scale()", b"\0" * 4096):
        assert image_reads(data, names) == {}


def test_a_cubin_that_is_not_linked_yet_may_read_everything() -> None:
    data = bytearray(cubin(90))
    data[16] = 1
    assert code_reads(bytes(data), KERNELS) == {}


def test_a_gpu_that_was_not_looked_at_may_read_everything() -> None:
    data = bytearray(cubin(90))
    flags = int.from_bytes(data[48:52], "little")
    data[48:52] = (flags & ~0xFF00 | 70 << 8).to_bytes(4, "little")
    assert code_reads(bytes(data), KERNELS) == {}


def test_an_image_of_the_simulator_says_what_it_does_not_read() -> None:
    image = simulated_image("scale 0 49152 2 0:8 8:4", "mix 0 49152 2 0:8 8:40 unread 16:24 44:4")
    reads = image_reads(image, {"scale", "mix"})
    assert spans(reads["scale"].mask) == [(0, 12)]
    assert launched(reads["mix"], bytes(48)) == [[(0, 16), (40, 44)]]


@pytest.mark.parametrize("line", ["mix 0 0 1 0:8 unread", "mix 0 0 1 0:8 unread 0:x", "mix 0 0 1 0:8 read 0:8"])
def test_an_image_of_the_simulator_that_says_it_wrongly_may_read_everything(line: str) -> None:
    found = image_reads(simulated_image(line), {"mix"})
    assert found == {} or spans(found["mix"].mask) == [(0, 8)]


def test_what_a_kernel_of_the_simulator_does_not_read_stands_in_its_source() -> None:
    spec = importlib.util.spec_from_file_location("make_image", MAKE_IMAGE)
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    text = maker.describe("// kernel: mix(ptr, u8, u32, u64[2]) static=256 unread=9:3,24:8\n// kernel: scale(ptr)\n")
    lines = [line.removeprefix("kernel ") for line in text.splitlines()]
    reads = image_reads(simulated_image(*lines), {"mix", "scale"})
    assert spans(reads["mix"].mask) == [(0, 9), (12, 24)]
    assert spans(reads["scale"].mask) == [(0, 8)]
