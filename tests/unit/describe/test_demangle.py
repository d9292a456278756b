"""C++ names of kernels: as `c++filt` writes them, and never a failure."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from foundry.describe.demangle import LONGEST_TEXT, readable, short

NAMES = Path(__file__).parents[2] / "data" / "kernel_names.txt"
PAIRS = [
    ("_Z3addPfi", "add(float*, int)", "add"),
    ("_Z3addILi4EEvPf", "void add<4>(float*)", "add<4>"),
    ("_ZN2at6native3sumEPKfS2_", "at::native::sum(float const*, float const*)", "sum"),
    ("_ZN12_GLOBAL__N_14fillEv", "(anonymous namespace)::fill()", "fill"),
    ("_Z1fPFivEPA3_d", "f(int (*)(), double (*) [3])", "f"),
    ("_ZN1AC1ERKS_", "A::A(A const&)", "A"),
    ("_ZN1AD2Ev", "A::~A()", "~A"),
    ("_Z1gIJifEEvDpT_", "void g<int, float>(int, float)", "g<int, float>"),
    ("_Z1hILb1ELj2ELln3EEvv", "void h<true, 2u, -3l>()", "h<true, 2u, -3l>"),
    ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const", "main::lambda"),
    ("_ZN1XplERKS_", "X::operator+(X const&)", "operator+"),
]


@pytest.mark.parametrize(("mangled", "full", "brief"), PAIRS)
def test_names(mangled: str, full: str, brief: str) -> None:
    assert (readable(mangled), short(mangled)) == (full, brief)


@pytest.mark.parametrize(
    "name",
    ["", "gemm", "_Z", "_Zfoo", "_Z3ad", "_Z99999999999999999999999f", "_ZN1AE junk", "_Z1fS9_", "_Z1fT_", "日本"],
)
def test_what_is_no_such_name_stays(name: str) -> None:
    assert (readable(name), short(name)) == (name, name)


def test_the_names_of_a_torch_job() -> None:
    lines = [line.split("\t") for line in NAMES.read_text().splitlines()]
    assert len(lines) > 10
    assert [[name, readable(name), short(name)] for name, _, _ in lines] == lines


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="needs c++filt to compare with")
def test_they_are_what_the_system_makes_of_them() -> None:
    names = [pair[0] for pair in PAIRS] + [line.split("\t")[0] for line in NAMES.read_text().splitlines()]
    result = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    assert [readable(name) for name in names] == result.stdout.splitlines()


def test_damaged_names_are_bounded() -> None:
    rng = random.Random(1)
    names = [line.split("\t")[0] for line in NAMES.read_text().splitlines()]
    begin = time.process_time()
    for _ in range(2000):
        letters = list(rng.choice(names))
        for _ in range(rng.randrange(1, 4)):
            letters[rng.randrange(2, len(letters))] = rng.choice("0129_EIJKLNPRSTUXZacfimv")
        name = "".join(letters)
        assert len(readable(name)) <= max(LONGEST_TEXT * 2, len(name))
        assert short(name)
    assert time.process_time() - begin < 20


@pytest.mark.parametrize("name", ["_Z1f" + "P" * 3000 + "i", "_Z1f" + "N" * 3000, "_Z1fI" * 500, "_Z1f" + "Z" * 3000])
def test_deep_names_stay(name: str) -> None:
    assert readable(name) == name


def test_names_that_double_stay() -> None:
    doubling = "_Z1f" + "St4pairI" + "".join(f"S{letter}_" for letter in "0123456789ABCDEFGHIJKLMNOP")
    assert readable(doubling) == doubling
