"""How much may be read ahead, on machines and in control groups as the test says."""

from __future__ import annotations

from pathlib import Path

import pytest

from foundry.prefetch import room as subject
from foundry.prefetch.room import SPARED, room

MIB = 1 << 20


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "groups").mkdir()
    monkeypatch.setattr(subject, "PROC", tmp_path / "proc")
    monkeypatch.setattr(subject, "GROUPS", tmp_path / "groups")
    return tmp_path


def memory(machine: Path, mebibytes: int) -> None:
    text = f"MemTotal:       99999999 kB\nMemFree:  1 kB\nMemAvailable:   {mebibytes << 10} kB\n"
    (machine / "proc" / "meminfo").write_text(text)


def group(folder: Path, most: str, current: int, inactive: int, names: tuple[str, str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{most}\n")
    (folder / names[1]).write_text(f"{current}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {inactive}\ninactive_anon 7\n")


TWO = ("memory.max", "memory.current", "inactive_file")
ONE = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def test_half_of_what_is_available_beyond_what_is_spared(machine: Path) -> None:
    memory(machine, 1256)
    assert room() == 500 * MIB


def test_none_where_little_is_available_or_nobody_says(machine: Path) -> None:
    assert room() == 0
    memory(machine, SPARED // MIB - 1)
    assert room() == 0
    (machine / "proc" / "meminfo").write_text("MemTotal: 1 kB\n")
    assert room() == 0


def test_a_control_group_that_allows_less(machine: Path) -> None:
    memory(machine, 100_000)
    (machine / "proc" / "self" / "cgroup").write_text("0::/system/mine\n")
    group(machine / "groups" / "system", str(1000 * MIB), 900 * MIB, 356 * MIB, TWO)
    group(machine / "groups" / "system" / "mine", "max", 5, 0, TWO)
    assert room() == 100 * MIB


def test_one_of_the_first_version(machine: Path) -> None:
    memory(machine, 100_000)
    (machine / "proc" / "self" / "cgroup").write_text("5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n")
    group(machine / "groups" / "memory", str(600 * MIB), 144 * MIB, 0, ONE)
    assert room() == 100 * MIB


def test_groups_that_say_nothing_limit_nothing(machine: Path) -> None:
    memory(machine, 1256)
    (machine / "proc" / "self" / "cgroup").write_text("0::/../..\nodd\n")
    assert room() == 500 * MIB
