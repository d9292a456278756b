"""CRC-32C against its definition, at the sizes where the way of computing changes."""

from __future__ import annotations

import random

import pytest

from foundry.model.checksum import crc32c


def slow(data: bytes) -> int:
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def test_the_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


@pytest.mark.parametrize(
    "size", [1, 3, 63, 2047, 2048, 2049, 4096, 4099, 11_391, 11_393, 45_503, 45_505, 65_537, 80_065, 200_001]
)
def test_all_sizes_agree_with_the_definition(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == slow(data)
    assert crc32c(memoryview(data)) == slow(data)


def test_long_data_is_the_sum_of_its_pieces() -> None:
    data = bytearray(random.Random(1).randbytes(1 << 16) * 160)
    whole = crc32c(data)
    data[len(data) // 2] ^= 1
    assert crc32c(data) != whole
    data[len(data) // 2] ^= 1
    # Appending a message's own checksum leaves the same remainder whatever the message: it tells long data from wrong.
    residue = crc32c(b"x" + crc32c(b"x").to_bytes(4, "little"))
    assert crc32c(bytes(data) + whole.to_bytes(4, "little")) == residue
