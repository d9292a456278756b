"""The whole way with the real hook on the simulator: the demo server is captured and restored."""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.request
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, read_until, wait_until

from foundry import archive, native

SERVER = Path(__file__).parents[1] / "engines" / "decode_server.py"


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, native.library_directory())


def server(*arguments: object) -> list[str]:
    return [sys.executable, str(SERVER), "--quiet", *map(str, arguments)]


def report_of(text: str) -> dict[str, object]:
    report: dict[str, object] = json.loads(text.splitlines()[-1])
    return report


def test_a_command_is_captured_and_restored_without_a_file_name(command: CommandLine) -> None:
    captured = command.run("capture", "--sim", "--", *server("--once"), environment={"FOUNDRY_SIM_SEED": "1"})
    assert captured.returncode == 0
    assert "5 graphs" in captured.stderr
    assert "simulated" in captured.stderr
    words = ("restore", "--sim", "--json", "--", *server("--once"))
    restored = command.run(*words, environment={"FOUNDRY_SIM_SEED": "2"})
    report = report_of(restored.stderr)
    assert restored.returncode == 0
    assert restored.stdout == captured.stdout != ""
    assert (report["restored"], report["graphs_restored"], report["graphs_given_up"]) == (True, 5, 0)
    assert report["simulated"] is True
    counters = report["counters"]
    assert isinstance(counters, dict)
    assert (counters["warm_ups_skipped"], counters["captures_skipped"]) == (5, 5)
    assert counters["stream_captures"] == 0


def test_two_captures_of_one_program_have_one_id(command: CommandLine, tmp_path: Path) -> None:
    found = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.fdry"
        words = ("capture", "-q", "--sim", "-o", str(path), "--", *server("--once"))
        assert command.run(*words, environment={"FOUNDRY_SIM_SEED": seed}).returncode == 0
        found.append(archive.read(path))
        assert found[-1].processes[0].spent["graphs_blocked_ns"] > 0
    assert archive.summary(tmp_path / "1.fdry").capture_id == archive.summary(tmp_path / "2.fdry").capture_id
    assert found[0].processes[0].spent != found[1].processes[0].spent


def test_an_exec_restore_says_one_line_itself(command: CommandLine) -> None:
    command.run("capture", "-q", "--sim", "--", *server("--once"))
    restored = command.run("restore", "--sim", "--", *server("--once"))
    lines = restored.stderr.splitlines()
    assert [line for line in lines if "5 graphs restored, 5 warm-ups and 5 captures skipped" in line] == lines
    assert lines[0].endswith("[simulated]")
    assert command.run("restore", "-q", "--sim", "--", *server("--once")).stderr == ""


def port_of(line: str) -> int:
    return int(line.rpartition(":")[2])


def ask(port: int, path: str) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return int(answer.status)


def test_a_server_is_captured_while_it_serves_and_restored(command: CommandLine) -> None:
    process = command.start("capture", "--sim", "--", *server("--port", 0))
    port = port_of(read_until(process.stdout, "http").splitlines()[-1])
    wait_until(command.archives)
    assert ask(port, "/health") == 200
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in (0, 130)
    report = command.work / "r.json"
    process = command.start("restore", "--sim", "--report", report, "--", *server("--port", 0))
    port = port_of(read_until(process.stdout, "http").splitlines()[-1])
    wait_until(report.exists)
    assert json.loads(report.read_text())["graphs_restored"] == 5
    assert ask(port, "/health") == 200
    process.terminate()
    process.communicate(timeout=30)


def test_another_simulated_gpu_is_refused_by_name_before_the_start(command: CommandLine) -> None:
    command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *server("--once"))
    other = {"FOUNDRY_SIM_GPU": "NVIDIA Simulated A100:80"}
    words = ("--sim", "a.fdry", "--", *server("--once"))
    result = command.run("restore", "--on-mismatch", "fail", *words, environment=other)
    assert (result.returncode, result.stdout) == (5, "")
    assert "mismatch-gpu-model: GPU model: archive NVIDIA Simulated H200, here NVIDIA Simulated A100" in result.stderr
    result = command.run("restore", *words, environment=other)
    assert result.returncode == 0
    assert result.stdout != ""
    assert "starting without restore" in result.stderr


def test_an_older_driver_is_refused_by_the_hook_and_named(command: CommandLine) -> None:
    command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *server("--once"))
    words = ("--sim", "--on-mismatch", "fail", "a.fdry", "--", *server("--once"))
    result = command.run("restore", *words, environment={"FOUNDRY_SIM_VERSION": "12040"})
    assert result.returncode == 5
    assert re.search(r"13(\.0|000)\b.*12(\.4|040)\b", result.stderr), "both versions are named"


def test_without_a_driver_the_command_fails_as_ever(command: CommandLine) -> None:
    result = command.run("capture", "--", *server("--once"))
    assert result.returncode not in (0, 125)
    assert "nothing to archive" in result.stderr
    assert command.archives() == []


def test_a_cached_image_that_was_damaged_is_made_again(command: CommandLine) -> None:
    command.run("capture", "-q", "--sim", "--", *server("--once"))
    first = command.run("restore", "-q", "--sim", "--", *server("--once"))
    (image,) = command.store.glob("images/*/*.image")
    good = image.read_bytes()
    image.write_bytes(good[:200] + bytes([good[200] ^ 1]) + good[201:])
    again = command.run("restore", "--json", "--sim", "--", *server("--once"))
    assert report_of(again.stderr)["graphs_restored"] == 5
    assert again.stdout == first.stdout
    assert image.read_bytes() == good


def test_the_doctor_sees_the_hook_and_its_table(command: CommandLine) -> None:
    checks = {check["what"]: check for check in json.loads(command.run("doctor", "--json").stdout)["checks"]}
    assert checks["hook"]["state"] == checks["simulator"]["state"] == "ok"
    table = json.loads(command.run("doctor", "--table", "--json").stdout)
    assert {"family": "init", "symbol": "cuInit", "since": "2000", "capture": "record", "restore": "own"} in table
    assert len(table) > 300


OCCUPY = """
import ctypes, runpy, sys
fixed = int(open("/proc/self/personality").read(), 16) & 0x40000
if not fixed:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    taken = 0x22 | 0x100000  # private, anonymous, at this place and nowhere else
    for base in %s:
        assert libc.mmap(base, 4096, 0, taken, -1, 0) == base
sys.argv = [%r, *sys.argv[1:]]
sys.path.insert(0, %r)
runpy.run_path(sys.argv[0], run_name="__main__")
"""

SAME = ("--quiet", "--once")


def test_a_range_that_something_else_took_is_had_at_a_second_start(command: CommandLine) -> None:
    command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *server("--once"))
    from foundry import archive

    bases = [device.base for process in archive.read(command.work / "a.fdry").processes for device in process.devices]
    assert bases
    script = command.work / "occupied.py"
    script.write_text(OCCUPY % (bases, str(SERVER), str(SERVER.parent)))
    words = ("--json", "--sim", "--allow", "mismatch-arguments", "a.fdry", "--", sys.executable, script, *SAME)
    result = command.run("restore", *words)
    report = report_of(result.stderr)
    assert result.returncode == 0
    assert "starting again with address randomisation off" in result.stderr
    assert (report["fixed_addresses"], report["graphs_restored"]) == (True, 5)


def test_the_same_where_foundry_became_the_command(command: CommandLine) -> None:
    captured = command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *server("--once"))
    from foundry import archive

    bases = [device.base for process in archive.read(command.work / "a.fdry").processes for device in process.devices]
    script = command.work / "occupied.py"
    script.write_text(OCCUPY % (bases, str(SERVER), str(SERVER.parent)))
    words = ("--sim", "--allow", "mismatch-arguments", "a.fdry", "--", sys.executable, script, *SAME)
    result = command.run("restore", *words)
    assert (result.returncode, result.stdout) == (0, captured.stdout)
