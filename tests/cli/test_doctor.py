"""`foundry doctor`, on a machine that is made up and on this one."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.snapshots import check

from foundry import native
from foundry.cli.commands import doctor as command
from foundry.compat import probe
from foundry.session import doctor
from foundry.session.doctor import Check, machine

GIB = 1 << 30
GPU = probe.Device(0, "NVIDIA H200 NVL", "00" * 16, 9, 0, 132, 139 * GIB, True, 0, False, 100 * GIB, 2)
BOTH = ("gpu", "simulator")
CHECKS = [
    Check("system", "ok", "Linux 6.1, x86_64, Python 3.11.7"),
    Check("limit of address space", "bad", "64 GiB; the hook reserves 768 GiB per GPU", "lift it: `ulimit -v`", BOTH),
    Check(
        "driver",
        "note",
        "libcuda.so.1: cannot open shared object file: No such file or directory",
        "`--sim` works without a driver",
        ("gpu",),
    ),
    Check("hook", "ok", "/a/path/that/is/long/enough/to/be/folded/site-packages/foundry/_lib/libfoundry_hook.so"),
]


def test_the_whole_output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command.show(CHECKS)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    check("doctor", shown)


def test_a_made_up_machine_from_end_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in {
        "proc/cpuinfo": "model name\t: A Processor\n",
        "proc/meminfo": "MemAvailable:   4194304 kB\n",
        "proc/self/status": "Seccomp:\t0\n",
        "proc/sys/vm/overcommit_memory": "2",
        "proc/sys/vm/max_map_count": "65530",
        "proc/sys/vm/mmap_rnd_bits": "28",
        "proc/sys/kernel/randomize_va_space": "2",
        "proc/sys/kernel/yama/ptrace_scope": "1",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue\n",
        "usr/lib/x86_64-linux-gnu/libcuda.so.1": "",
        "usr/local/cuda/bin/nvcc": "",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(machine, "may_fix_addresses", lambda: False)
    found = probe.Machine(version=13000, release="580.159.04", devices=(GPU,))
    named = {"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    checks = doctor.examine(doctor.Surroundings(named, found, tmp_path))
    # What is of this machine whatever it is made to look like.
    of_here = {"system", "C library", "limits", "hook", "simulator", "import name", "store", "temporary folder"}
    left = [
        replace(check, found=check.found.replace(str(tmp_path), "ROOT"))
        for check in checks
        if check.what not in of_here and check.what != "killed capture"
    ]
    assert {check.what for check in checks} >= of_here
    command.show(left)
    check("doctor-machine", capsys.readouterr().out)


@pytest.fixture
def real(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, native.library_directory())


def test_the_self_test_captures_and_restores(real: CommandLine) -> None:
    result = real.run("doctor", "--json")
    document = json.loads(result.stdout)
    assert result.stderr == ""
    found = {check["what"]: check for check in document["checks"]}
    assert found["self test"]["found"] == "on the simulator: 3 graphs captured, packed, restored and equal"
    assert (document["simulator"], found["self test"]["state"]) == (True, "ok")
    assert result.returncode == (0 if document["sound"] else 1)
    assert real.left_overs() == []
    assert platform.release() in found["system"]["found"]


def test_a_driver_that_is_the_simulator_is_said_to_be_one(real: CommandLine) -> None:
    environment = {"LD_LIBRARY_PATH": str(native.simulator_directory())}
    result = real.run("doctor", "--no-self-test", environment=environment)
    assert "CUDA 13.0, simulated; 1 GPU" in result.stdout
    assert "self test" not in result.stdout


def test_levers_of_the_simulator_do_not_reach_the_self_test(real: CommandLine) -> None:
    environment = {"FOUNDRY_SIM_MASK": "cuMemMap"}
    assert json.loads(real.run("doctor", "--json", environment=environment).stdout)["simulator"] is True


def test_without_native_libraries_it_says_so_and_ends_well(tmp_path: Path) -> None:
    bare = CommandLine(tmp_path, tmp_path / "nothing")
    result = bare.run("doctor")
    assert result.returncode == 1
    assert "the hook is missing" in " ".join(result.stdout.split())
    assert "not run, because of: hook" in result.stdout
    assert "capture and restore with --sim: no, because of: hook, simulator" in result.stdout
    assert result.stderr == ""


def test_nothing_is_known_of_the_environment(real: CommandLine) -> None:
    words = real.words("doctor", "--json", "--no-self-test")
    environment = {"PYTHONPATH": real.environment["PYTHONPATH"]}
    result = subprocess.run(words, env=environment, capture_output=True, text=True, cwd="/", check=False)
    assert json.loads(result.stdout)["checks"]
