"""The files of a start: named by a capture, read ahead beside a restore, and nothing else changes."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from helpers.commandline import PROGRAM, CommandLine, program, read_until, wait_until

from foundry.caches.watching import Watch

SCRIPT = """
import os, runpy, sys, time
import mine
for name in ("first", "second"):
    if os.environ.get("READS") != "0":
        open(os.path.expanduser(f"~/data/{name}"), "rb").read()
    time.sleep(0.05)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
time.sleep(float(os.environ.get("LINGER", "0")))
"""


@pytest.fixture
def command(foundry_command: CommandLine) -> CommandLine:
    folder = foundry_command.folder / "home" / "data"
    folder.mkdir()
    for name in ("first", "second"):
        (folder / name).write_bytes(os.urandom(5000))
    (foundry_command.work / "script.py").write_text(SCRIPT)
    (foundry_command.work / "mine.py").write_text("x = 1\n")
    return foundry_command


def words(*arguments: object) -> list[str]:
    return [sys.executable, "script.py", str(PROGRAM), *map(str, arguments)]


def captured(command: CommandLine, *options: str) -> list[dict[str, object]]:
    result = command.run("capture", *options, "-q", "-o", "a.fdry", "--", *words())
    assert (result.returncode, result.stderr) == (0, "")
    found: list[dict[str, object]] = listed(command)
    return found


def listed(command: CommandLine) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(command.run("inspect", "--files", "--json", "a.fdry").stdout)[
        "start_files"
    ]
    return found


def read_ahead(command: CommandLine, *options: str) -> set[str]:
    """Which files of the folder somebody opens during a restore whose command does not."""
    folder = command.folder / "home" / "data"
    watch = Watch([str(folder)])
    environment = {"READS": "0", "LINGER": "4"}
    result = command.run("restore", *options, "a.fdry", "--", *words(), environment=environment)
    assert result.returncode == 0
    found = {Path(path).name for path in watch.opened()}
    watch.close()
    return found


def test_a_capture_names_them_in_order(command: CommandLine) -> None:
    found = captured(command, "--prefetch")
    paths = [str(file["path"]) for file in found]
    assert paths.index("~/data/first") < paths.index("~/data/second")
    assert [path for path in paths if "/mine." in path]
    assert [path for path in paths if "/libc.so" in path or "/libc-" in path]
    assert [file["read"] for file in found if file["path"] == "~/data/first"] == [5000]
    home = str(command.folder / "home")
    assert not [path for path in paths if path.startswith((home, "/proc", "/dev")) or "foundry-" in path]


def test_not_unless_it_is_asked_for(command: CommandLine) -> None:
    assert captured(command) == []
    assert captured(command, "--force", "--no-prefetch") == []


def test_a_restore_reads_them_ahead(command: CommandLine) -> None:
    captured(command, "--prefetch")
    assert read_ahead(command) == {"first", "second"}
    assert read_ahead(command, "--report", "r.json") == {"first", "second"}


def test_not_if_that_is_not_wanted(command: CommandLine) -> None:
    captured(command, "--prefetch")
    assert read_ahead(command, "--no-prefetch") == set()
    captured(command, "--force")
    assert read_ahead(command) == set()


def test_files_that_are_gone_or_new_are_no_matter(command: CommandLine) -> None:
    captured(command, "--prefetch")
    folder = command.folder / "home" / "data"
    (folder / "first").unlink()
    os.mkfifo(folder / "first")
    (folder / "second").write_bytes(b"")
    result = command.run("restore", "a.fdry", "--", *words(), environment={"READS": "0", "LINGER": "0.3"})
    assert (result.returncode, result.stderr) == (0, "")


def test_it_is_over_when_the_command_is(command: CommandLine) -> None:
    captured(command, "--prefetch")
    began = time.monotonic()
    result = command.run("restore", "a.fdry", "--", *words())  # whose pipes something else might hold
    assert result.returncode == 0
    assert time.monotonic() - began < 20


def test_what_a_server_reads_after_it_is_ready_is_not_of_its_start(command: CommandLine) -> None:
    late = command.folder / "home" / "data" / "late"
    late.write_bytes(b"late")
    (command.work / "late.py").write_text(
        "import runpy, sys, threading, time, pathlib\n"
        "def read():\n"
        "    while not pathlib.Path('a.fdry').exists(): time.sleep(0.02)\n"
        f"    while True: open({str(late)!r}).close(); time.sleep(0.1)\n"
        "threading.Thread(target=read, daemon=True).start()\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    server = command.start(
        *("capture", "--prefetch", "-o", "a.fdry", "--", sys.executable, "late.py", str(PROGRAM)),
        *("--commit", "--serve"),
    )
    try:
        read_until(server.stdout, "serving")
        wait_until((command.work / "a.fdry").exists)
        time.sleep(0.5)
    finally:
        server.terminate()
        server.communicate(timeout=30)
    paths = [file["path"] for file in listed(command)]
    assert paths
    assert "~/data/late" not in paths


def test_it_is_no_part_of_what_a_capture_is(command: CommandLine) -> None:
    def identity() -> object:
        return json.loads(command.run("inspect", "--json", "a.fdry").stdout)["capture_id"]

    captured(command)
    without = identity()
    captured(command, "--force", "--prefetch")
    assert identity() == without
    assert command.run("verify", "a.fdry").returncode == 0


def test_it_stays_through_a_proof(command: CommandLine) -> None:
    result = command.run("capture", "--prefetch", "--prove", "-q", "-o", "a.fdry", "--", *words())
    assert "Traceback" not in result.stderr
    assert "~/data/first" in [file["path"] for file in listed(command)]


def test_a_program_that_is_no_python_has_its_libraries(command: CommandLine) -> None:
    assert program is not None
    result = command.run(
        *("capture", "--prefetch", "-q", "-o", "a.fdry", "--", "/bin/sh", "-c"),
        f"{sys.executable} -I -S {PROGRAM}; sleep 0.3",
    )
    assert result.returncode == 0, result.stderr
    assert [file for file in listed(command) if "/libc" in str(file["path"])]
