"""What is not understood of a cubin leaves it whole, and so do variables, which a program sets in its own load."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.cubin_model import CubinModel
from hypothesis import given, settings
from hypothesis.strategies import floats, integers, lists, sampled_from, sets, tuples

from foundry.binary.cubin import Cubin
from foundry.binary.errors import ImageError
from foundry.binary.likeness import compare
from foundry.binary.parts import Parts
from foundry.binary.rebuild import rebuilt
from foundry.binary.trim import trimmed, without_others

CUBINS = Path(__file__).parents[2] / "data" / "cubins"
WHOLE, OLDER, VARIABLES = (
    (CUBINS / f"{name}.cubin").read_bytes() for name in ("several_90", "several_90_older", "variables_90")
)
KERNELS = sorted(Cubin(WHOLE).kernels)
CALLS, CHECKS, LIMITED = "_Z5callsPf", "_Z6checksPii", "_Z7limitedPff"


def refused(cubin: bytes, kernels: list[str], words: str) -> None:
    assert trimmed(cubin, kernels) is None
    with pytest.raises(ImageError, match=words):
        without_others(cubin, kernels)


def test_a_kernel_that_it_does_not_have() -> None:
    refused(WHOLE, [CALLS, "none"], "no kernel `none`")
    refused(WHOLE, [], "no kernel is asked for")


def changed(change: Callable[[CubinModel, bytearray], None]) -> bytes:
    data = bytearray(WHOLE)
    change(CubinModel(WHOLE), data)
    return bytes(data)


def header_at(model: CubinModel, name: str) -> int:
    return struct.unpack_from("<Q", WHOLE, 40)[0] + 64 * model.names.index(name)


def contents_at(model: CubinModel, name: str) -> int:
    return int(model.headers[model.names.index(name)][4])


def number_of(model: CubinModel, symbol: str) -> int:
    return [found[0] for found in model.symbols].index(symbol)


def pack(form: str, at: Callable[[CubinModel], int], value: int) -> bytes:
    return changed(lambda model, data: struct.pack_into(form, data, at(model), value))


def test_what_a_kernel_calls_stays_with_it() -> None:
    def call(model: CubinModel, data: bytearray) -> None:
        at = contents_at(model, ".nv.callgraph") + 8
        assert model.symbols[struct.unpack_from("<I", data, at)[0]][0] == CHECKS
        struct.pack_into("<I", data, at + 4, number_of(model, CALLS))

    less = Cubin(without_others(changed(call), [CHECKS]))
    assert set(less.kernels) == {CHECKS, CALLS}
    assert set(Cubin(without_others(changed(call), [LIMITED])).kernels) == {LIMITED}


def test_what_the_table_of_addresses_names_always_stays() -> None:
    def name(model: CubinModel, data: bytearray) -> None:
        struct.pack_into("<I", data, contents_at(model, ".rela.nv.constant4") + 12, number_of(model, LIMITED))

    assert set(Cubin(without_others(changed(name), [CALLS])).kernels) == {CALLS, LIMITED}


def test_what_an_attribute_names_stays() -> None:
    def name(model: CubinModel, data: bytearray) -> None:
        place = data.index(bytes([4, 0x0F, 4, 0]), contents_at(model, f".nv.info.{CHECKS}"))
        struct.pack_into("<I", data, place + 4, number_of(model, CALLS))

    assert set(Cubin(without_others(changed(name), [CHECKS])).kernels) == {CHECKS, CALLS}


@pytest.mark.parametrize(
    ("form", "at", "value", "words"),
    [
        ("<I", lambda model: header_at(model, ".nv.compat") + 4, 0x70000099, "`.nv.compat` of type 0x70000099 is not"),
        ("<I", lambda model: header_at(model, f".text.{CALLS}") + 44, 1, "is of another function"),
        ("<I", lambda model: header_at(model, f".nv.constant0.{CALLS}") + 44, 3, "is of another function"),
        ("<I", lambda model: header_at(model, ".rela.nv.constant4") + 44, 3, "is of another one than it is called"),
        ("<I", lambda model: header_at(model, ".nv.global.init") + 44, 3, "refers to something unknown"),
        ("<I", lambda model: header_at(model, ".nv.compat"), 1, "two sections have one name"),
        ("<I", lambda model: contents_at(model, ".nv.callgraph"), 7, "calls through pointers"),
        ("<B", lambda model: contents_at(model, ".nv.info") + 1, 0x7F, "attribute 0x7f of its functions is not known"),
        ("<B", lambda model: contents_at(model, f".nv.info.{CALLS}") + 1, 0x7F, "attribute 0x7f of its code is not"),
        ("<Q", lambda model: header_at(model, ".nv.global.init") + 16, 8, "placed in another way"),
        ("<Q", lambda model: header_at(model, ".nv.global.init") + 8, 7, "is not around its sections|in no segment"),
        ("<H", lambda _: 16, 1, "its header is of another kind"),
        ("<Q", lambda _: 24, 1, "its header is of another kind"),
        ("<B", lambda _: 8, 9, "its header is of another kind"),
        ("<B", lambda _: 49, 80, "its code is for sm_80"),
        ("<B", lambda _: 49, 100, "its code is for sm_100"),
        ("<H", lambda model: contents_at(model, ".symtab") + 24 * 1 + 6, 0xFFF1, "a symbol is in no section"),
        ("<B", lambda model: contents_at(model, ".debug_frame"), 0xFE, "a call frame"),
    ],
)
def test_what_is_not_understood_stays_whole(form: str, at: Callable[[CubinModel], int], value: int, words: str) -> None:
    refused(pack(form, at, value), [CALLS], words)


@pytest.mark.parametrize(("field", "words"), [(8, "in no segment|not around"), (32, "not around"), (40, "not around")])
def test_segments_that_are_around_something_else(field: int, words: str) -> None:
    for segment in (2, 3, 4):
        at = struct.unpack_from("<Q", WHOLE, 32)[0] + 56 * segment + field
        refused(pack("<Q", lambda _, at=at: at, struct.unpack_from("<Q", WHOLE, at)[0] + 128), [CALLS], words)


def test_a_section_to_load_that_no_segment_is_around() -> None:
    refused(pack("<Q", lambda model: header_at(model, ".shstrtab") + 8, 2), [CALLS], "in no segment or in two")


def test_memory_between_sections_without_contents_counts() -> None:
    wide = f".nv.shared.{CALLS}"

    def widen(model: CubinModel, data: bytearray) -> None:
        struct.pack_into("<Q", data, header_at(model, wide) + 48, 256)
        number = next(number for number, segment in enumerate(model.segments) if segment[6] > segment[5])
        memory = model.segments[number][5]
        for name, header in zip(model.names, model.headers, strict=True):
            if header[1] == 8 and header[2] & 1:
                memory += -memory % (256 if name == wide else header[8]) + header[5]
        struct.pack_into("<Q", data, struct.unpack_from("<Q", data, 32)[0] + 56 * number + 40, memory)

    model = CubinModel(without_others(changed(widen), [CALLS]))
    in_file, in_memory = next(segment[5:7] for segment in model.segments if segment[6] > segment[5])
    assert in_memory == in_file + -in_file % 256 + model.headers[model.names.index(wide)][5]


def test_two_kernels_in_one_section_stay_whole() -> None:
    def move(model: CubinModel, data: bytearray) -> None:
        place = contents_at(model, ".symtab") + 24 * number_of(model, CALLS) + 6
        struct.pack_into("<H", data, place, model.names.index(f".text.{LIMITED}"))

    refused(changed(move), [LIMITED], "not alone in a section|of another function")


def test_variables_that_a_program_could_set() -> None:
    assert Parts(VARIABLES).variables == [".nv.constant3", "table", "counter", "state", "primes"]
    kernel = min(Cubin(VARIABLES).kernels)
    assert trimmed(VARIABLES, [kernel]) is None
    with pytest.raises(ImageError, match=r"it has variables: `\.nv\.constant3`"):
        without_others(VARIABLES, [kernel])
    assert [Parts(cubin).variables for cubin in (WHOLE, OLDER)] == [[], []]


@pytest.mark.parametrize("kind", [0, 1, 5, 6, 10, 11, 12, 13, 15])
def test_a_symbol_of_any_kind_but_those_without_a_state_is_a_variable(kind: int) -> None:
    def name(model: CubinModel, data: bytearray) -> None:
        number = next(at for at, symbol in enumerate(model.symbols) if symbol[0].startswith("__unnamed"))
        data[contents_at(model, ".symtab") + 24 * number + 4] = 0x10 | kind

    refused(changed(name), [CALLS], "it has variables: `__unnamed_1`")


@pytest.mark.parametrize(("name", "told"), [("$str", 0), ("$str$1", 0), ("__unnamed_1", 0), ("$str9", 1), ("str", 1)])
def test_what_compilers_make_for_themselves_is_no_variable(name: str, told: bool) -> None:
    def rename(model: CubinModel, data: bytearray) -> None:
        place = data.index(b"\0__unnamed_1\0", contents_at(model, ".strtab")) + 1
        data[place : place + 11] = name.encode().ljust(11, b"\0")

    assert Parts(changed(rename)).variables == [name] * told


def test_what_is_no_cubin() -> None:
    refused(b"", ["fill"], "no cubin")
    refused(b".version 9.0\n.entry fill", ["fill"], "no cubin")
    refused(WHOLE[:500], [CALLS], "passes its end")


def likeness(whole: bytes, less: bytes) -> bool:
    """Whether what stays is what it was, by the reader that trimming has no part in."""
    try:
        before, after = CubinModel(whole), CubinModel(less)
        gone = {name for name in before.names if name not in after.sections}
        symbols = [symbol for symbol in before.symbols if symbol[3] not in gone]
        if (after.head, after.misaligned, after.symbols) != (before.head, [], symbols):
            return False
        for name, (*rest, what) in after.sections.items():
            *wanted, was = before.section(name)
            if name == ".nv.info":
                was = [record for record in was if record[3][0][3] not in gone]
            elif name == ".nv.callgraph":
                was = [pair for pair in was if pair[0][3] not in gone]
            if (rest, what) != (wanted, was):
                return False
    except (AssertionError, IndexError, KeyError, StopIteration, ValueError, struct.error):
        return False
    return True


def damaged(cubin: bytes, step: int) -> Iterator[bytes]:
    """Change a byte of each section header, of each segment, and in each section at every so many bytes."""
    model = CubinModel(cubin)
    tables = [(struct.unpack_from("<Q", cubin, 40)[0], 64 * len(model.headers)), (0, 64)]
    tables.append((struct.unpack_from("<Q", cubin, 32)[0], 56 * len(model.segments)))
    contents = [(header[4], header[5]) for header in model.headers if header[1] not in (0, 8)]
    for begin, size in tables + contents:
        for place in range(begin, begin + size, step if (begin, size) in contents else 4):
            data = bytearray(cubin)
            data[place] ^= 1 << place % 7
            yield bytes(data)


def test_damage_to_what_stays_is_seen() -> None:
    whole, less = Parts(WHOLE), without_others(WHOLE, [CALLS])
    compare(whole, Parts(less))
    missed = []
    for data in damaged(less, 13):
        try:
            compare(whole, Parts(data))
        except ImageError:
            continue
        missed.append(data)
    assert all(likeness(WHOLE, data) for data in missed)
    begin, count = struct.unpack_from("<Q", less, 32)[0], len(CubinModel(less).segments)
    assert all(data[begin : begin + 56 * count] == less[begin : begin + 56 * count] for data in missed)


def test_a_part_that_is_lost_is_missed() -> None:
    whole = Parts(WHOLE)
    dropped = whole.unneeded([CALLS])
    dropped[whole.section_names.index(f".rela.text.{CALLS}")] = True
    with pytest.raises(ImageError, match="was lost"):
        compare(whole, Parts(rebuilt(whole, dropped)))


def test_what_is_not_alike_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def damage(*arguments: Any) -> bytes:
        less = bytearray(rebuilt(*arguments))
        less[contents_at(CubinModel(bytes(less)), f".text.{CALLS}") + 16] ^= 1
        return bytes(less)

    monkeypatch.setattr("foundry.binary.trim.rebuilt", damage)
    refused(WHOLE, [CALLS], f"section `.text.{CALLS}` has changed")


@pytest.mark.parametrize("whole", [WHOLE, OLDER], ids=["several_90", "several_90_older"])
def test_a_damaged_cubin_stays_whole_or_keeps_its_damage(whole: bytes) -> None:
    answers = []
    for data in damaged(whole, 211):
        less = trimmed(data, [CALLS, CHECKS])
        answers.append(less is not None)
        assert less is None or likeness(data, less)
    assert 0 < sum(answers) < len(answers)


@settings(max_examples=150, deadline=None)
@given(
    whole=sampled_from([WHOLE, OLDER, VARIABLES]),
    places=lists(tuples(floats(0, 1, exclude_max=True), integers(0, 255)), min_size=1, max_size=4),
    kept=sets(sampled_from(KERNELS), min_size=1),
    cut=sampled_from([0, 0, 0, 0, 0, 0, 1, 600, 30000]),
)
def test_any_damage_is_an_answer(whole: bytes, places: list[tuple[float, int]], kept: set[str], cut: int) -> None:
    data = bytearray(whole)
    for place, value in places:
        data[int(place * len(data))] = value
    less = trimmed(bytes(data[: len(data) - cut]), kept)
    assert less is None or Cubin(less).kernels.keys() >= kept
