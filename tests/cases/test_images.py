"""Kernel images as programs carry them: compressed, mixed, large, damaged; the driver gets them untouched (C48-C51)."""

from __future__ import annotations

import random
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from cases.driver_shell import make_shell
from helpers.native_build import PROGRAMS, hooked_environment, link_simulator, make_kernels
from native.hook_run import Bench, events, outcome
from unit.binary.test_fatbin import CUBIN, compressed, container, entry

from foundry.binary.fatbin import FatbinError, unpack

DATA = Path(__file__).parents[1] / "data" / "fatbins"
MODES = ("none", "size")
PTX = b".version 8.0\n.target sm_90\n.address_size 64\n\0"
LARGE = b"\x7fELF" + bytes(12) + b"\2\0" + b"0123456789abcdef" * (70 << 16)


def parts(rng: random.Random) -> list[bytes]:
    """PTX and three cubins, each compressed or not, in any order."""
    found = []
    for kind, architecture, payload in ((1, 90, PTX), (2, 80, CUBIN[::-1]), (2, 86, CUBIN[::-1]), (2, 90, CUBIN)):
        make = rng.choice((entry, compressed))
        found.append(make(payload, kind=kind, architecture=architecture))
    rng.shuffle(found)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_mixed_container_gives_the_cubin_of_the_gpu(seed: int) -> None:
    """C49: padding is the container's, not the cubin's."""
    assert unpack(container(*parts(random.Random(seed))), 90).startswith(CUBIN)


@pytest.mark.parametrize("make", [entry, compressed])
def test_a_cubin_past_64_mb(make: object) -> None:
    """C49."""
    assert len(LARGE) > 64 << 20
    assert unpack(container(entry(CUBIN, 80), make(LARGE)), 90).startswith(LARGE)  # type: ignore[operator]


def test_damaged_sizes_are_errors_and_no_more(tmp_path: Path) -> None:
    """C49: every field of every entry, set to what hurts most."""
    whole = container(*parts(random.Random(3)))
    for at in range(0, len(whole) - 8, 4):
        for value in (0, 1, 1 << 31, (1 << 64) - 1, (1 << 63) + 8):
            data = whole[:at] + value.to_bytes(8, "little") + whole[at + 8 :]
            with suppress(FatbinError):
                assert len(unpack(data, 90)) <= 1 << 20


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_ptx_and_three_cubins_hold_the_same_code_compressed(tmp_path: Path) -> None:
    """C48."""
    targets = [word for number in (80, 86, 90) for word in ("-gencode", f"arch=compute_{number},code=sm_{number}")]
    targets += ["-gencode", "arch=compute_90,code=compute_90"]
    found = {}
    for mode in MODES:
        made = tmp_path / f"{mode}.fatbin"
        words = ["nvcc", "-fatbin", f"--compress-mode={mode}", *targets, str(DATA / "kernels.cu"), "-o", str(made)]
        subprocess.run(words, check=True, capture_output=True)
        found[mode] = [unpack(made.read_bytes(), number) for number in (80, 86, 90)]
    assert found["size"] == found["none"]
    assert len(set(found["none"])) == 3


SAYS_WHAT_IT_GETS = {
    name: f"""
#include <stdio.h>
extern void *real_{name};
int {name}(void **made, const void *image{more}) {{
    if (!real_cuInit) shell_open();
    printf("driver %p\\n", image);
    fflush(stdout);
    return ((int (*)(void **, const void *{types}))real_{name})(made, image{words});
}}
"""
    for name, more, types, words in (
        ("cuModuleLoadData", "", "", ""),
        ("cuModuleLoadFatBinary", "", "", ""),
        ("cuModuleLoadDataEx", ", unsigned a, void *b, void *c", ", unsigned, void *, void *", ", a, b, c"),
        (
            "cuLibraryLoadData",
            ", void *a, void *b, unsigned c, void *d, void *e, unsigned f",
            ", void *, void *, unsigned, void *, void *, unsigned",
            ", a, b, c, d, e, f",
        ),
    )
}


@pytest.mark.parametrize("form", ["image", "fatbin"])
def test_the_driver_gets_the_bytes_of_the_program_where_they_lie(bench: Bench, tmp_path: Path, form: str) -> None:
    """C51: not a copy, not a byte behind their end, and none is written."""
    source, image = PROGRAMS / "sim_kernels.c", tmp_path / f"kernels.{form}"
    make_kernels(image, source, *(["--fatbin"] if form == "fatbin" else []))
    make_shell(tmp_path / "driver", overrides=SAYS_WHAT_IT_GETS)
    session = tmp_path / "session"
    session.mkdir()
    environment = hooked_environment("capture", session) | {"LD_LIBRARY_PATH": str(tmp_path / "driver")}
    binary = bench.program("guarded", *link_simulator())
    done = subprocess.run(
        [binary, str(image)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    first, *seen, last = done.stdout.splitlines()
    assert (seen, last) == ([f"driver {first.split()[1]}"] * 4, "loaded")
    spool = outcome(session, 0, "", "").spool()
    loads = events(spool, "Image")
    assert len(loads) == 4
    assert all(spool.blob(load.blob) == image.read_bytes() for load in loads)
