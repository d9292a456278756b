"""Fatbins: the entry for the GPU, or a reason to keep the container whole."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from foundry.binary.fatbin import FLAG_COMPRESSED, FLAG_ZSTD, MAGIC, FatbinError, entries, unpack

DATA = Path(__file__).parents[2] / "data" / "fatbins"
CUBIN = b"\x7fELF" + bytes(12) + struct.pack("<H", 2) + b"machine code" * 9 + bytes(2)
MODES = ("none", "speed", "balance", "size", "default")


def entry(
    payload: bytes, architecture: int = 90, kind: int = 2, flags: int = 0x11, raw: int = 0, stored: int = 0
) -> bytes:
    padded = payload + bytes(-len(payload) % 8)
    header = struct.pack(
        "<HHIQIIIIIIQQQ", kind, 0x101, 64, len(padded), stored, 0, 0, architecture, 0, 0, flags, 0, raw
    )
    assert len(header) == 64
    return header + padded


def container(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(body)) + body


def compressed(data: bytes, **changes: int) -> bytes:
    payload = zstandard.ZstdCompressor().compress(data)
    fields = {"flags": 0x11 | FLAG_ZSTD, "raw": len(data), "stored": len(payload)} | changes
    return entry(payload, **fields)


@pytest.mark.parametrize("mode", MODES)
def test_each_compress_mode_gives_the_same_cubin(mode: str) -> None:
    assert unpack((DATA / f"{mode}.fatbin").read_bytes(), 90) == (DATA / "sm_90.cubin").read_bytes()


def test_entries_of_a_real_fatbin_are_listed() -> None:
    found = list(entries((DATA / "size.fatbin").read_bytes()))
    assert [(item.kind, item.architecture) for item in found] == [(2, 80), (1, 90), (2, 90)]


@pytest.mark.parametrize(
    ("name", "architecture", "why"),
    [
        ("both", 90, "2 cubins for sm_90"),
        ("relocatable", 90, "relocatable"),
        ("none", 100, "no cubins for sm_100"),
        ("none", 86, "no cubins for sm_86"),
    ],
)
def test_what_is_not_plainly_one_cubin_stays_whole(name: str, architecture: int, why: str) -> None:
    with pytest.raises(FatbinError, match=why):
        unpack((DATA / f"{name}.fatbin").read_bytes(), architecture)


def test_plain_and_zstd_entries_are_unpacked() -> None:
    other = entry(CUBIN[::-1], 80)
    assert unpack(container(other, entry(CUBIN)), 90).startswith(CUBIN)
    assert unpack(container(other, compressed(CUBIN)), 90) == CUBIN


def test_concatenated_containers_are_all_searched() -> None:
    assert unpack(container(entry(CUBIN, 80)) + container(compressed(CUBIN)), 90) == CUBIN
    assert unpack(container(entry(CUBIN, 80)) + container(compressed(CUBIN)) + bytes(24), 90) == CUBIN
    with pytest.raises(FatbinError, match="2 cubins"):
        unpack(container(compressed(CUBIN)) + container(compressed(CUBIN)), 90)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (container(entry(CUBIN, flags=0x11 | FLAG_COMPRESSED, stored=20)), "older scheme"),
        (container(compressed(CUBIN, raw=len(CUBIN) + 1)), "in the frame"),
        (container(compressed(CUBIN, raw=1 << 40)), "past the limit"),
        (container(compressed(CUBIN, raw=0)), "past the limit"),
        (container(compressed(CUBIN, stored=9)), "damaged|unpacked"),
        (container(compressed(CUBIN, stored=1 << 31)), "passes the end"),
        (container(entry(b"not an ELF file")), "not an ELF"),
        (container(entry(CUBIN))[:-1], "passes the end"),
        (container(entry(CUBIN))[:30], "passes the end"),
        (b"\x50\xed\x55\xba", "cut inside"),
        (b"something else than a fatbin", "no container"),
        (container(b"short"), "cut inside an entry"),
        (container(entry(CUBIN)[:8] + struct.pack("<Q", 1 << 63) + entry(CUBIN)[16:]), "passes the end"),
        (container(struct.pack("<HHI", 2, 1, 0) + entry(CUBIN)[8:]), "passes the end"),
        (b"", "no cubins"),
    ],
)
def test_lengths_are_not_believed(data: bytes, why: str) -> None:
    with pytest.raises(FatbinError, match=why):
        unpack(data, 90)


def test_a_frame_without_a_size_is_bounded_by_the_declared_one() -> None:
    payload = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 20))
    with pytest.raises(FatbinError, match="declared"):
        unpack(container(entry(payload, flags=0x11 | FLAG_ZSTD, raw=1000, stored=len(payload))), 90)


def test_damaged_bytes_end_in_an_error_or_a_cubin() -> None:
    rng = random.Random(1)
    whole = (DATA / "size.fatbin").read_bytes()
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(0, 80) if rng.random() < 0.5 else rng.randrange(len(data))] = rng.randrange(256)
        with suppress(FatbinError):
            unpack(bytes(data[: rng.randrange(len(data) // 2, len(data) + 1)]), 90)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("mode", MODES)
def test_what_this_nvcc_makes_unpacks_to_its_own_cubin(mode: str, tmp_path: Path) -> None:
    source, made, cubin = DATA / "kernels.cu", tmp_path / "made.fatbin", tmp_path / "made.cubin"
    targets = ["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90"]
    subprocess.run(["nvcc", "-fatbin", f"--compress-mode={mode}", *targets, source, "-o", made], check=True)
    subprocess.run(["nvcc", "-cubin", "-arch=sm_90", source, "-o", cubin], check=True)
    assert unpack(made.read_bytes(), 90) == cubin.read_bytes()
