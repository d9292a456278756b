"""The process that reads ahead: no child of ours, with nothing open, and gone with the command."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from foundry.launch import aside
from foundry.model import StartFile
from foundry.prefetch import background

BEGIN = """
import os, sys, time
from foundry.model import StartFile
from foundry.launch import aside
from foundry.prefetch import ahead, background, room
folder = sys.argv[1]
kept = open(folder + "/lock", "w")
def fetch(piece):
    with open(folder + "/" + piece.path.rpartition("/")[2], "w") as file:
        file.write(f"{os.getpid()} {os.getppid()} {os.getpgrp()} {sorted(os.listdir('/proc/self/fd'))} {os.nice(0)}")
    time.sleep(60)
    return 0
ahead._fetch = fetch
command = aside.handle_of(os.getpid())
files = [StartFile("~/one", 1), StartFile("/proc/two", 1)]
aside.start(lambda: background.live(command, lambda: files, {"HOME": "/x"}), command)
os.close(command)
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no child", os.getpid(), os.getpgrp(), flush=True)
os.execv("/bin/cat", ["cat"])
"""


def gone(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True


def wait_for(path: Path) -> list[str]:
    for _ in range(400):
        with contextlib.suppress(OSError):
            if text := path.read_text():
                return text.split()
        time.sleep(0.02)
    raise AssertionError(f"{path} does not come")


def test_a_process_of_its_own_that_ends_with_the_command(tmp_path: Path) -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", BEGIN, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert command.stdin
    assert command.stdout
    try:
        assert command.stdout.readline().split() == ["no", "child", str(command.pid), str(os.getpgrp())]
        process, parent, group, *rest = wait_for(tmp_path / "one")
        assert int(parent) != command.pid
        assert int(group) not in (os.getpgrp(), command.pid)
        assert rest[-1] == "19"
        held = {name: Path(f"/proc/{process}/fd/{name}") for name in os.listdir(f"/proc/{process}/fd")}  # noqa: PTH208
        targets = {str(path.readlink()) for path in held.values()}
        assert targets <= {"/dev/null", "anon_inode:[pidfd]", "pidfd:"} or len(targets) == 2
        assert str(tmp_path / "lock") not in targets
        assert not (tmp_path / "two").exists()
        assert not gone(int(process))
        command.stdin.close()
        assert command.wait(10) == 0
        assert command.stdout.read() == ""  # nothing else holds the pipe
        for _ in range(200):
            if gone(int(process)):
                break
            time.sleep(0.02)
        assert gone(int(process))
    finally:
        command.kill()
        command.stdout.close()
        command.wait()


def test_a_fault_while_it_reads_its_list_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> list[StartFile]:
        raise ValueError("a fault")

    command = aside.handle_of(os.getpid())
    aside.start(lambda: background.live(command, broken, {}), command)
    os.close(command)
    time.sleep(0.2)
    assert capfd.readouterr() == ("", "")


def test_where_no_end_can_be_seen_there_is_no_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    with pytest.raises(OSError, match="cannot tell"):
        aside.handle_of(os.getpid())
