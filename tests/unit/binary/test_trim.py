"""A cubin with fewer kernels: what stays is what it was."""

from __future__ import annotations

import itertools
import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.cubin_model import CubinModel

from foundry.binary import simulated
from foundry.binary.cubin import Cubin
from foundry.binary.entries import entries
from foundry.binary.trim import trimmed, without_others

DATA = Path(__file__).parents[2] / "data"
CUBINS = {name: (DATA / "cubins" / f"{name}.cubin").read_bytes() for name in ("several_90", "several_90_older")}
SMALL = (DATA / "fatbins" / "sm_90.cubin").read_bytes()
WIDE = (DATA / "cubins" / "wide.cubin").read_bytes()
WHOLE = CUBINS["several_90"]
KERNELS = sorted(Cubin(WHOLE).kernels)

every_cubin = pytest.mark.parametrize("whole", [*CUBINS.values(), SMALL], ids=[*CUBINS, "small"])


def subsets(kernels: list[str]) -> list[tuple[str, ...]]:
    return [chosen for size in range(1, len(kernels)) for chosen in itertools.combinations(kernels, size)]


@every_cubin
def test_what_stays_is_what_it_was(whole: bytes) -> None:
    check_subsets(whole, subsets(sorted(Cubin(whole).kernels)))


def check_subsets(whole: bytes, chosen_sets: Iterable[Sequence[str]]) -> None:
    before = CubinModel(whole)
    for chosen in chosen_sets:
        less = trimmed(whole, chosen)
        assert less is not None
        assert len(less) < len(whole)
        after = CubinModel(less)
        assert after.kernels == set(chosen)
        gone = {name for name in before.names if before.owner(name) not in (None, *chosen) or debug(name)}
        assert after.names == [name for name in before.names if name not in gone]
        assert after.symbols == [symbol for symbol in before.symbols if symbol[3] not in gone]
        assert after.behind == [symbol for symbol in before.behind if symbol[3] not in gone]
        assert after.head == before.head
        assert after.misaligned == []
        for name, section in after.sections.items():
            assert section == expected(before.sections[name], name, gone), name
        assert after.frames() == [frame for frame in before.frames() if frame[1][0][2][3] not in gone]


def debug(name: str) -> bool:
    return ("debug_" in name or "nv_debug" in name) and not name.endswith(".debug_frame")


def expected(section: tuple[Any, ...], name: str, gone: set[str]) -> tuple[Any, ...]:
    *rest, what = section
    if name == ".nv.info":
        what = [record for record in what if record[3][0][3] not in gone]
    elif name == ".nv.callgraph":
        what = [pair for pair in what if pair[0][3] not in gone]
    return (*rest, what)


@every_cubin
def test_segments_hold_the_sections_that_they_held(whole: bytes) -> None:
    kernel = min(Cubin(whole).kernels)
    before, after = CubinModel(whole), CubinModel(without_others(whole, [kernel]))
    assert [segment[:2] for segment in after.segments] == [segment[:2] for segment in before.segments]

    def held(model: CubinModel) -> list[list[str]]:
        found = []
        for _, flags, offset, _, _, size, *_ in model.segments:
            inside = []
            for name, header in zip(model.names, model.headers, strict=True):
                filled = 0 if header[1] == 8 else header[5]
                right = bool(header[2] & 1) == bool(flags & 2) and (not header[2] & 4 or flags & 1)
                if header[2] & 2 and right and offset <= header[4] and header[4] + filled <= offset + size:
                    inside.append(name)
            found.append(inside)
        return found

    gone = {name for name in before.names if before.owner(name) not in (None, kernel)}
    assert held(after) == [[name for name in names if name not in gone] for names in held(before)]
    for model in (before, after):
        for segment, names in zip(model.segments, held(model), strict=True):
            if names:
                headers = [model.headers[model.names.index(name)] for name in names]
                memory = max(header[4] + (0 if header[1] == 8 else header[5]) for header in headers) - segment[2]
                assert segment[5] == memory
                for header in headers:
                    memory += -memory % header[8] + header[5] if header[1] == 8 else 0
                assert segment[6] == memory


@every_cubin
def test_the_reader_finds_in_it_what_it_found_before(whole: bytes) -> None:
    before = Cubin(whole)
    for kernel in before.kernels:
        after = Cubin(without_others(whole, [kernel]))
        assert list(after.kernels) == [kernel]
        for ask in ("code", "begin", "layout", "parameter_bytes", "parameter_bank", "bank_bytes"):
            assert getattr(after, ask)(kernel) == getattr(before, ask)(kernel)
        assert (after.architecture, after.undefined) == (before.architecture, before.undefined)


def test_nothing_to_leave_out() -> None:
    assert trimmed(WHOLE, KERNELS) is None
    assert trimmed(WIDE, ["wide"]) is None
    once = without_others(WHOLE, KERNELS[:2])
    assert trimmed(once, KERNELS[:2]) is None
    assert without_others(once, KERNELS[:1]) == without_others(WHOLE, KERNELS[:1])


def test_the_order_of_the_kernels_asked_for_does_not_matter() -> None:
    assert without_others(WHOLE, KERNELS[:3]) == without_others(WHOLE, {*KERNELS[2::-1]})


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("options", [(), ("-lineinfo",), ("-O1", "-Xptxas=-O0"), ("-maxrregcount=32",)], ids=str)
def test_what_this_nvcc_makes(options: tuple[str, ...], tmp_path: Path) -> None:
    made = tmp_path / "several.cubin"
    subprocess.run(["nvcc", "-cubin", "-arch=sm_90", *options, DATA / "cubins" / "several.cu", "-o", made], check=True)
    whole = made.read_bytes()
    check_subsets(whole, [[kernel] for kernel in Cubin(whole).kernels])


SIMULATED = (
    "kernel fill 0 49152 3 0:8 8:4 12:4",
    "kernel add 16 49136 3 0:8 8:8 16:4 unread 20:4",
    "kernel fill_more 0 49152 1 0:8",
)


def simulated_image(*lines: str, code: bytes = b"\x7fELF code") -> bytes:
    text = "".join(f"{line}\n" for line in lines).encode()
    begin = -(-(24 + len(text)) // 16) * 16
    header = simulated.MAGIC + struct.pack("<QII", begin + len(code), len(text), begin)
    return (header + text).ljust(begin, b"\0") + code


def test_images_of_the_simulator_lose_kernels_too() -> None:
    whole = simulated_image(*SIMULATED)
    assert without_others(whole + b"behind", ["fill", "add"]) == simulated_image(*SIMULATED[:2])
    assert without_others(whole, ["fill_more"]) == simulated_image(SIMULATED[2])
    assert "fill" not in entries(without_others(whole, ["fill_more"]), 90)


@pytest.mark.parametrize(
    ("image", "kernels"),
    [
        (simulated_image(*SIMULATED), ["fill", "none"]),
        (simulated_image(*SIMULATED), ["fill", "fill_more", "add"]),
        (simulated_image(*SIMULATED, "global bias 4"), ["fill"]),
        (simulated_image(*SIMULATED)[:-1], ["fill"]),
        (simulated_image(*SIMULATED, "else"), ["fill"]),
    ],
)
def test_images_of_the_simulator_that_stay_whole(image: bytes, kernels: list[str]) -> None:
    assert trimmed(image, kernels) is None
