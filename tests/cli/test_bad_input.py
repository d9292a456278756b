"""What goes wrong with the machine, the driver or the disk, with the real hook on the simulator: said, and harmless."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from helpers.commandline import CommandLine

from foundry import archive, native

SERVER = Path(__file__).parents[1] / "engines" / "decode_server.py"
UNPROVEN = "the archive does not prove that its graphs may lie elsewhere (`foundry capture --prove` does)"
BASE, NEXT_BASE = 0x403500000000, 0x203500000000
BEFORE = """
import ctypes, resource, runpy, signal, sys

def occupy(bases):
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    for base in bases:
        assert libc.mmap(base, 4096, 0, 0x100022, -1, 0) == base

def fill_the_disk_at(nth):
    from cuda.bindings import driver
    real, calls = driver.cuGraphInstantiate, []
    def instantiate(*arguments):
        calls.append(arguments)
        if len(calls) == nth:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
        return real(*arguments)
    driver.cuGraphInstantiate = instantiate

exec(sys.argv[1])
sys.argv = [sys.argv[2], "--quiet", "--once"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

OTHER = ("--allow", "mismatch-arguments")
"""For a command with other words than the captured one."""
OCCUPYING = (*OTHER, "--no-early")
"""For one that takes the range before it calls the driver. An early start has it before that."""


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, native.library_directory())


def server(before: str = "") -> list[str]:
    """The demo server for one round of prompts, after something was done to its process."""
    if before:
        folder = [f"import sys; sys.path.insert(0, {str(SERVER.parent)!r})", BEFORE]
        return [sys.executable, "-c", "\n".join(folder), before, str(SERVER)]
    return [sys.executable, str(SERVER), "--quiet", "--once"]


@pytest.fixture
def captured(command: CommandLine) -> str:
    """What the server prints; its archive is `a.fdry`."""
    result = command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *server())
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout
    return result.stdout


class TestCapture:
    def test_without_a_gpu_there_is_nothing_to_archive(self, command: CommandLine) -> None:
        none = {"FOUNDRY_SIM_DEVICES": "0"}
        plain = command.run("capture", "--sim", "-o", "a.fdry", "--", *server(), environment=none)
        assert plain.returncode == 1, "the status is the command's own"
        assert "CUDA_ERROR_NO_DEVICE" in plain.stderr
        assert "exit code 1; no hooked CUDA process seen" in plain.stderr
        assert list(command.work.iterdir()) == []

    def test_a_driver_too_old_to_read_parameters_names_both_versions(self, command: CommandLine) -> None:
        old = {"FOUNDRY_SIM_VERSION": "12030"}
        result = command.run("capture", "--sim", "-o", "a.fdry", "--", *server(), environment=old)
        assert result.returncode == 0
        assert "5 graphs, 0 kernel images, 5 not restorable" in result.stderr
        assert "needs a driver for CUDA 12.4 or newer, this one is for 12.3" in result.stderr
        assert not any(graph.restorable for graph in archive.read(command.work / "a.fdry").processes[0].graphs)

    def test_a_driver_that_the_hook_does_not_know_is_told(self, command: CommandLine) -> None:
        odd = {"FOUNDRY_SIM_MASK": "cuCtxGetCurrent"}
        result = command.run("capture", "--sim", "-o", "a.fdry", "--", *server(), environment=odd)
        assert result.returncode == 125
        assert "nothing was recorded" in result.stderr
        assert "driver 13.0 does not match the list of functions: the driver lacks cuCtxGetCurrent" in result.stderr
        assert list(command.work.iterdir()) == []

    def test_a_disk_that_fills_up_under_the_spool_is_told_and_kept_in_the_archive(self, command: CommandLine) -> None:
        plain = command.run("capture", "-q", "--sim", "-o", "whole.fdry", "--", *server())
        result = command.run("capture", "--sim", "-o", "a.fdry", "--", *server("fill_the_disk_at(3)"))
        assert (result.returncode, result.stdout) == (0, plain.stdout)
        assert "foundry:   spool-broken: python" in result.stderr
        assert "could not be written on, as on a full disk; what came later is missing" in result.stderr
        capture = archive.read(command.work / "a.fdry")
        assert "spool-broken" in [finding.code for finding in capture.findings]
        assert [len(process.graphs) for process in capture.processes] == [2]

    def test_another_base_is_taken_where_something_lies_at_the_first(self, command: CommandLine) -> None:
        words = server(f"occupy([{BASE}])")
        plain = command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *words)
        assert plain.returncode == 0
        (process,) = archive.read(command.work / "a.fdry").processes
        assert [device.base for device in process.devices] == [NEXT_BASE]
        restored = command.run("restore", "--json", "--sim", *OCCUPYING, "a.fdry", "--", *server())
        report = json.loads(restored.stderr.splitlines()[-1])
        assert (restored.stdout, report["graphs_restored"], report["disarmed"]) == (plain.stdout, 5, {})


class TestRestore:
    def test_without_a_gpu_the_command_says_what_it_says(self, command: CommandLine, captured: str) -> None:
        none = {"FOUNDRY_SIM_DEVICES": "0"}
        result = command.run("restore", "--sim", "a.fdry", "--", *server(), environment=none)
        assert (result.returncode, result.stdout) == (1, "")
        assert "CUDA_ERROR_NO_DEVICE" in result.stderr
        assert "foundry" not in result.stderr.replace(str(SERVER), "").replace("foundry/", "")

    def test_an_older_driver_is_told_in_one_line(self, command: CommandLine, captured: str) -> None:
        old = {"FOUNDRY_SIM_VERSION": "12080"}
        result = command.run("restore", "--sim", "a.fdry", "--", *server(), environment=old)
        assert (result.returncode, result.stdout) == (0, captured)
        (line,) = result.stderr.splitlines()
        assert line.startswith("foundry: warning: restore given up: ")
        assert line.endswith("mismatch-driver: CUDA of the driver: archive 13.0, here 12.8")
        assert command.run("restore", "-q", "--sim", "a.fdry", "--", *server(), environment=old).stderr == ""

    def test_a_taken_range_is_told_where_foundry_became_the_command(self, command: CommandLine, captured: str) -> None:
        result = command.run("restore", "--sim", *OCCUPYING, "a.fdry", "--", *server(f"occupy([{BASE}])"))
        assert (result.returncode, result.stdout) == (0, captured)
        (line,) = result.stderr.splitlines()
        reason = f"range taken: device 0 wants {BASE:#x}, got none; {UNPROVEN}"
        assert line == f"foundry: warning: restore given up: {reason}; anonymous memory stands there"

    def test_a_range_that_is_taken_at_both_starts_is_given_up(self, command: CommandLine, captured: str) -> None:
        result = command.run("restore", "--json", "--sim", *OCCUPYING, "a.fdry", "--", *server(f"occupy([{BASE}])"))
        report = json.loads(result.stderr.splitlines()[-1])
        assert result.returncode == 0
        assert result.stdout.endswith(captured), "the first start was ended before it printed all"
        assert "starting again with address randomisation off" in result.stderr
        assert (report["restored"], report["fixed_addresses"]) == (False, True)
        (reason,) = report["disarmed"].values()
        assert reason.startswith("range taken: ")

    def test_a_newer_archive_is_refused_with_both_versions(self, command: CommandLine, captured: str) -> None:
        newer = command.work / "newer.fdry"
        vectors = Path(__file__).parents[2] / "format_spec" / "vectors" / "v1"
        newer.write_bytes((vectors / "invalid" / "newer-major.fdry").read_bytes())
        result = command.run("restore", "--sim", "newer.fdry", "--", *server())
        assert (result.returncode, result.stdout) == (0, captured)
        assert "is of format 2.0, this Foundry reads up to 1.0" in result.stderr
        assert "starting without restore" in result.stderr
        result = command.run("restore", "--on-mismatch", "fail", "--sim", "newer.fdry", "--", *server())
        assert (result.returncode, result.stdout) == (4, "")

    @pytest.mark.parametrize("size", [0, 1, 40, -1, -100])
    def test_a_cut_archive_is_refused_and_the_command_runs(
        self, command: CommandLine, captured: str, size: int
    ) -> None:
        path = command.work / "a.fdry"
        path.write_bytes(path.read_bytes()[:size])
        result = command.run("restore", "--sim", "a.fdry", "--", *server())
        assert (result.returncode, result.stdout) == (0, captured)
        (line,) = result.stderr.splitlines()
        assert "a.fdry" in line
        assert "starting without restore" in line

    def test_only_the_graph_that_cannot_be_rebuilt_is_given_up(self, command: CommandLine, captured: str) -> None:
        failing = {"FOUNDRY_SIM_FAIL": "cuGraphInstantiateWithFlags:2"}
        result = command.run("restore", "--json", "--sim", "a.fdry", "--", *server(), environment=failing)
        report = json.loads(result.stderr.splitlines()[-1])
        assert (result.returncode, result.stdout) == (0, captured)
        assert (report["graphs_restored"], report["graphs_given_up"]) == (4, 1)
        (given_up,) = report["processes"][0]["given_up"]
        assert given_up["reason"].startswith("cuGraphInstantiateWithFlags: ")
        assert report["counters"]["captures_skipped"] == 4
