"""The hook as a file: what it exports, what it needs, what it does at load."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from helpers import emulation
from helpers.native_build import cc, sanitized
from helpers.source import NATIVE

from foundry import native

OLDEST_GLIBC = (2, 31)
NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"}


def tool(name: str) -> str:
    """Name a tool that must be of the libraries' processor: it has the compiler's prefix."""
    return cc().removesuffix("gcc") + name if emulation.active() else name


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def library() -> Path:
    return native.hook_library()


def listed_functions() -> set[str]:
    text = (NATIVE / "table" / "driver_functions.def").read_text()
    rows = re.findall(r"^FN\(\w+, (\w+),", text, re.MULTILINE)
    twins = re.findall(r"^FN_STREAM\(\w+, (\w+), (\w+),", text, re.MULTILINE)
    return {*rows, *(name for name, _ in twins), *(f"{name}_{suffix}" for name, suffix in twins)}


def test_it_exports_the_list_and_nothing_else(library: Path) -> None:
    exported = {line.split()[-1] for line in output("nm", "-D", "--defined-only", str(library)).splitlines()}
    driver = {name for name in exported if re.match("cu[A-Z]", name)}
    assert driver == listed_functions()
    others = exported - driver
    doors = {"dlsym", "__libc_start_main"}
    assert doors <= others
    assert all(name.startswith("foundry_") for name in others - doors)


@pytest.mark.skipif(sanitized(), reason="a sanitized library needs its runtime")
def test_it_needs_the_c_library_only(library: Path) -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", str(library))))
    assert needed <= NEEDED


@pytest.mark.skipif(sanitized(), reason="a sanitized library needs its runtime")
def test_so_does_the_simulator() -> None:
    path = native.simulator_directory() / native.SIMULATOR_NAME
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", str(path))))
    assert needed <= NEEDED | {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


@pytest.mark.skipif(sanitized(), reason="a sanitized library needs its runtime")
def test_it_loads_from_an_old_c_library(library: Path) -> None:
    versions = {
        tuple(map(int, found.split(".")))
        for found in re.findall(r"GLIBC_([\d.]+)", output("readelf", "-VW", str(library)))
    }
    assert max(versions) <= OLDEST_GLIBC


@pytest.mark.skipif(sanitized(), reason="a sanitized library needs its runtime")
def test_it_does_nothing_at_load(library: Path) -> None:
    # One entry is the compiler's own (frame_dummy), in every shared library.
    dynamic = output("readelf", "-dW", str(library))
    (size,) = re.findall(r"\(INIT_ARRAYSZ\)\s+(\d+)", dynamic) or ["0"]
    assert int(size) <= 8
    assert not re.search(r"_GLOBAL__sub_I|__static_initialization", output("nm", "-C", str(library)))


def test_its_own_addresses_are_never_taken_from_another_library(library: Path) -> None:
    # A function pointer of the table that the loader looks up by name could become the driver's, or another hook's.
    names = listed_functions()
    looked_up = re.findall(
        r"R_\w+_(?:GLOB_DAT|JUMP_SLOT?|64|ABS64)\s+\w+\s+(\w+)", output("readelf", "-rW", str(library))
    )
    assert not names & set(looked_up)
    assert "dlsym" not in looked_up


def test_dlsym_ends_in_a_jump(library: Path) -> None:
    code = output(tool("objdump"), "-d", "--no-show-raw-insn", "--disassemble=dlsym", str(library))
    assert re.search(r"\bjmp\s+\*|\bbr\s+x\d+", code), code
    assert not re.search(r"call\s+\*|\bblr\s+x\d+", code), code


def test_thread_data_needs_no_help_of_the_loader(library: Path) -> None:
    assert "__tls_get_addr" not in output("nm", "-D", str(library)) or sanitized()
