"""`capture --prove`: two runs, what they prove, and a restore whose addresses are taken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commandline import CommandLine

from foundry import archive, native

SERVER = Path(__file__).resolve().parents[1] / "engines" / "decode_server.py"
BASES = "403500000000", "203500000000"
PROGRAM = f"""
import ctypes, os, runpy, sys
for place in filter(None, os.environ.get("OCCUPIED", "").split(",")):
    map = ctypes.CDLL(None).mmap
    map.restype, map.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *5 * [ctypes.c_long]]
    assert map(int(place, 16), 4096, 0, 0x100022, -1, 0) == int(place, 16)
if os.path.exists("runs"):
    exec(os.environ.get("SECOND", ""))
open("runs", "a").write("x")
sys.argv = [{str(SERVER)!r}, "--once", "--quiet", *sys.argv[1:]]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    made = CommandLine(tmp_path, native.library_directory())
    (made.work / "server.py").write_text(PROGRAM)
    return made


def capture(command: CommandLine, *words: str, **environment: str) -> tuple[int, str, str]:
    environment = {"FOUNDRY_SIM_SEED": "3", **environment}
    given = ("capture", "--sim", "-o", "a.fdry", *words, "--", sys.executable, "server.py")
    done = command.run(*given, environment=environment)
    return done.returncode, done.stdout, done.stderr


def restore(command: CommandLine, occupied: str = "") -> tuple[str, str, dict[str, object]]:
    given = ("restore", "--sim", "--no-early", "--report", "report.json", "a.fdry", "--", sys.executable, "server.py")
    done = command.run(*given, environment={"OCCUPIED": occupied, "FOUNDRY_SIM_SEED": "9"})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, json.loads((command.work / "report.json").read_text())


def test_a_proven_archive_is_used_at_other_addresses(command: CommandLine) -> None:
    code, output, errors = capture(command, "--prove", "--json")
    assert code == 0, errors
    assert (command.work / "runs").read_text() == "xx"
    assert "running the command once more, with its memory elsewhere, for the proof\n" in errors
    assert "  proven: 5 of 5 graphs, 580 words move with their memory, 0 are noise\n" in errors
    report = json.loads(errors.splitlines()[-1])
    assert report["proof"] == {"graphs": 5, "proven": 5, "words": 580, "noise": 0}
    plain = output
    with archive.open_archive(command.work / "a.fdry") as opened:
        process = opened.process(0)
        assert process.devices[0].base == int(BASES[0], 16)
    for occupied in ("", BASES[0], ",".join(BASES)):
        given, said, report = restore(command, occupied)
        assert given == plain
        assert (report["graphs_restored"], report["disarmed"]) == (5, {})
        assert ("at other addresses" in said) == bool(occupied)
        assert "starting again" not in said


def test_an_unproven_archive_is_given_up_where_its_addresses_are_taken(command: CommandLine) -> None:
    code, output, errors = capture(command)
    assert (code, "once more" in errors) == (0, False)
    given, said, report = restore(command, BASES[0])
    assert (given, report["graphs_restored"]) == (output, 0)
    assert "the archive does not prove that its graphs may lie elsewhere (`foundry capture --prove` does)" in said


def test_nothing_is_printed_twice_however_late_the_parent_looks(command: CommandLine) -> None:
    _, output, _ = capture(command)
    for fails in (False, True):
        options = ["--no-early", "--report", "r.json", *(("--on-mismatch", "fail") if fails else ())]
        words = ["restore", "--sim", *options, "a.fdry", "--", sys.executable, "server.py"]
        program = (
            "import sys; from foundry.session import restore_parent; from foundry.cli.main import main;"
            f"restore_parent.TICK_SECONDS = 2.0; sys.argv = ['foundry', *{words!r}]; main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=command.work,
            env={**command.environment, "OCCUPIED": BASES[0], "FOUNDRY_SIM_SEED": "9"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == ((5, "") if fails else (0, output)), done.stderr


def test_the_image_of_an_archive_is_made_anew_once_it_is_proven(command: CommandLine) -> None:
    assert capture(command)[0] == 0
    restore(command)
    (command.work / "runs").unlink()
    assert capture(command, "--prove", "--force")[0] == 0
    assert restore(command, BASES[0])[2]["graphs_restored"] == 5


def test_another_second_run_is_not_proven(command: CommandLine) -> None:
    code, _, errors = capture(
        command,
        "--prove",
        SECOND=f"sys.path.insert(0, {str(SERVER.parent)!r}); import decode_model; decode_model.LAYERS = 2",
    )
    assert code == 3, errors
    assert "graphs not proven: " in errors
    assert "proof-unlike" in errors
    findings = command.run("inspect", "a.fdry", "--findings").stdout
    assert "proof-unlike" in findings
    assert restore(command)[2]["disarmed"] == {}


def test_a_second_run_that_fails_leaves_the_archive_unproven(command: CommandLine) -> None:
    code, _, errors = capture(command, "--prove", SECOND="sys.exit(9)")
    assert code == 3
    assert "error: not proven: the second run of the command left nothing to compare; the archive is written" in errors
    assert archive.summary(command.work / "a.fdry").processes[0].proof == {}
    assert restore(command)[2]["graphs_restored"] == 5


def test_a_command_that_fails_is_not_run_again(command: CommandLine) -> None:
    (command.work / "runs").write_text("x")
    code, _, errors = capture(command, "--prove", SECOND="import atexit; atexit.register(os._exit, 7)")
    assert (code, "once more" in errors) == (7, False)


def test_what_the_second_run_prints_goes_to_standard_error(command: CommandLine) -> None:
    once = capture(command)[1]
    (command.work / "runs").unlink()
    _, output, errors = capture(command, "--prove", "--force")
    assert output == once
    assert once.splitlines()[0] in errors


def test_a_server_must_stop_to_be_run_twice(command: CommandLine) -> None:
    code, _, errors = capture(command, "--prove", "--ready-log", "ready")
    assert (code, "a server does not end by itself" in errors) == (2, True)


def test_inspect_says_what_is_proven(command: CommandLine) -> None:
    assert capture(command, "--prove")[0] == 0
    shown = command.run("inspect", "a.fdry").stdout
    assert "proven   all 5 graphs may lie elsewhere: 580 words move, 0 are noise\n" in shown
    document = json.loads(command.run("inspect", "a.fdry", "--json").stdout)
    assert document["processes"][0]["proof"] == {"graphs": 5, "words": 580, "noise": 0}
    assert command.run("verify", "--deep", "a.fdry").returncode == 0
