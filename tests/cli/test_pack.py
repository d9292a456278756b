"""`foundry pack`: what a capture leaves when foundry itself is killed, and the archive that is made of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, processes_with, program, read_until, wait_until

from foundry import archive, native
from foundry.session import record

SERVER = Path(__file__).parents[1] / "engines" / "decode_server.py"
HALF_FRAME = b"\x28\0\0\0"


def sessions(command: CommandLine) -> list[Path]:
    return sorted((command.folder / "tmp").glob("foundry-*"))


def killed(command: CommandLine, *arguments: object, words: list[str] | None = None) -> Path:
    """Kill foundry while it captures, wait for its keeper to end the command, and name what is left."""
    running = words or program("--serve", "--graphs", 3, "--simulated")
    process = command.start("capture", *arguments, "--", *running)
    read_until(process.stdout, "serving")
    process.kill()
    process.communicate(timeout=30)
    (folder,) = sessions(command)
    wait_until(lambda: processes_with(str(folder)) == [] and not _spooling(folder))
    return folder


def _spooling(folder: Path) -> bool:
    from foundry.launch import descendants

    return bool(descendants.of_session(f"FOUNDRY_SPOOL={folder / 'spool'}", -1))


def test_a_killed_capture_is_finished_where_it_would_have_written(foundry_command: CommandLine) -> None:
    folder = killed(foundry_command, "-o", "a.fdry")
    target = foundry_command.work / "a.fdry"
    assert not target.exists()
    result = foundry_command.run("pack", folder)
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith(f"foundry: wrote `{target}`, ")
    assert result.stderr.endswith(" 3 graphs, 0 kernel images, simulated\n")
    capture = archive.read(target)
    assert [len(process.graphs) for process in capture.processes] == [3]
    assert json.loads(capture.context["argv"]) == program("--serve", "--graphs", 3, "--simulated")
    assert sessions(foundry_command) == []


def test_without_a_file_name_it_goes_into_the_store_and_is_found_by_the_command(foundry_command: CommandLine) -> None:
    words = program("--serve", "--graphs", 3)
    folder = killed(foundry_command, words=words)
    assert foundry_command.run("pack", "-q", folder).stderr == ""
    assert len(foundry_command.archives()) == 1
    process = foundry_command.start("restore", "--json", "--", *words)
    read_until(process.stdout, "serving")
    process.terminate()
    _, told = process.communicate(timeout=30)
    report = json.loads(told.splitlines()[-1])
    assert (report["archive"], report["graphs_restored"]) == (str(foundry_command.archives()[0]), 1)


def test_the_simulator_s_graphs_come_back_from_a_killed_capture(tmp_path: Path) -> None:
    command = CommandLine(tmp_path, native.library_directory())
    server = [sys.executable, "-u", str(SERVER), "--port", "0"]
    process = command.start("capture", "--sim", "-o", "a.fdry", "--", *server)
    session = command.folder / "tmp"

    def committed() -> bool:
        return any("committed" in path.read_text() for path in session.glob("foundry-*/status"))

    wait_until(committed)
    process.kill()
    process.communicate(timeout=30)
    (folder,) = sessions(command)
    wait_until(lambda: not _spooling(folder))
    (command.work / "a.fdry").unlink(missing_ok=True)
    result = command.run("pack", "--json", folder)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["graphs"], told["restorable"], told["torn"], told["running"]) == (5, 5, False, False)
    once = [sys.executable, str(SERVER), "--quiet", "--once"]
    words = ("--sim", "--json", "--allow", "mismatch-arguments", "a.fdry", "--", *once)
    plain = command.run("restore", *words)
    report = json.loads(plain.stderr.splitlines()[-1])
    assert (report["graphs_restored"], report["graphs_given_up"]) == (5, 0)


def test_what_is_left_is_named_by_list_doctor_pack_and_the_next_capture(foundry_command: CommandLine) -> None:
    folder = killed(foundry_command, "-o", "a.fdry")
    hint = f"`foundry pack {folder}`"
    assert hint in foundry_command.run("list").stderr
    assert hint in foundry_command.run("doctor", "--no-self-test").stdout
    nothing = foundry_command.run("pack")
    assert (nothing.returncode, f"a killed capture left `{folder}`" in nothing.stderr) == (2, True)
    again = foundry_command.run(
        "capture", "-o", "b.fdry", "--", *program("--serve", "--graphs", 3, "--simulated", "-h")
    )
    assert hint not in again.stderr, "another command"
    process = foundry_command.start("capture", "-o", "b.fdry", "--", *program("--serve", "--graphs", 3, "--simulated"))
    assert hint in read_until(process.stderr, hint)
    read_until(process.stdout, "serving")
    process.terminate()
    process.communicate(timeout=30)
    assert sessions(foundry_command) == [folder]


def test_the_whole_tree_is_killed_at_once_as_by_a_power_cut(foundry_command: CommandLine) -> None:
    process = foundry_command.start("capture", "-o", "a.fdry", "--", *program("--serve", "--graphs", 3))
    read_until(process.stdout, "serving")
    (folder,) = sessions(foundry_command)
    for number in [*_below(process.pid), process.pid]:
        os.kill(number, signal.SIGKILL)
    process.communicate(timeout=30)
    assert foundry_command.run("pack", folder).returncode == 0
    assert len(archive.read(foundry_command.work / "a.fdry").processes[0].graphs) == 3


def _below(process: int) -> list[int]:
    """The keeper first, so that it does nothing."""
    from foundry.launch import descendants

    return sorted(descendants.below(process), key=lambda number: "keeper" not in _name(number))


def _name(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text()


def test_a_torn_spool_is_packed_told_and_kept(foundry_command: CommandLine) -> None:
    folder = killed(foundry_command, "-o", "a.fdry")
    (events,) = folder.glob("spool/*/events")
    events.write_bytes(events.read_bytes() + HALF_FRAME)
    result = foundry_command.run("pack", folder)
    assert result.returncode == 3
    assert "spool-torn-tail" in result.stderr
    assert "damaged and left out" in result.stderr
    assert sessions(foundry_command) == [folder]
    assert foundry_command.run("pack", "-o", "b.fdry", "--json", folder).returncode == 3
    assert (foundry_command.work / "b.fdry").exists()


def test_a_file_that_stands_there_is_replaced_with_force_only(foundry_command: CommandLine) -> None:
    folder = killed(foundry_command, "-o", "a.fdry")
    target = foundry_command.work / "a.fdry"
    target.write_text("mine")
    result = foundry_command.run("pack", folder)
    assert (result.returncode, target.read_text()) == (125, "mine")
    assert f"`{target}` exists" in result.stderr
    assert foundry_command.run("pack", "-o", foundry_command.work, folder).returncode == 125
    assert foundry_command.run("pack", "--force", "--keep", folder).returncode == 0
    assert archive.read(target).processes
    assert sessions(foundry_command) == [folder], "--keep"


def test_a_capture_that_still_runs_is_packed_to_another_file_only(foundry_command: CommandLine) -> None:
    process = foundry_command.start("capture", "-o", "a.fdry", "--", *program("--serve", "--graphs", 3))
    read_until(process.stdout, "serving")
    (folder,) = sessions(foundry_command)
    refused = foundry_command.run("pack", folder)
    assert (refused.returncode, "still runs" in refused.stderr) == (2, True)
    result = foundry_command.run("pack", "-o", "b.fdry", folder)
    assert result.returncode == 0
    assert "still being written" in result.stderr
    assert len(archive.read(foundry_command.work / "b.fdry").processes[0].graphs) == 3
    process.terminate()
    process.communicate(timeout=30)
    assert archive.read(foundry_command.work / "a.fdry").processes[0].complete


def test_a_bare_spool_needs_a_file_name_and_is_never_removed(foundry_command: CommandLine) -> None:
    spool = killed(foundry_command, "-o", "a.fdry").rename(foundry_command.folder / "moved") / "spool"
    (spool.parent / record.NAME).unlink()
    refused = foundry_command.run("pack", spool)
    assert (refused.returncode, "-o FILE" in refused.stderr) == (2, True)
    assert foundry_command.run("pack", "-o", "b.fdry", spool).returncode == 0
    assert spool.is_dir()
    assert "argv" not in archive.read(foundry_command.work / "b.fdry").context


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no folder at"),
        (lambda path: path.write_text("x"), "is not a folder, so it is no spool"),
        (lambda path: path.mkdir(), "is empty: no process recorded anything"),
        (lambda path: (path.mkdir(), (path / "x").write_text("")), "is not a spool"),
        (lambda path: (path.mkdir(), (path / "events").write_text("")), "is the spool of one process"),
        (lambda path: ((path / "p").mkdir(parents=True), (path / "p/events").write_text("")), "recording had begun"),
        (
            lambda path: ((path / "p").mkdir(parents=True), (path / "p/events").write_text("x" * 90)),
            "recording had begun",
        ),
    ],
)
@pytest.mark.parametrize("json_wanted", [False, True])
def test_what_is_no_spool_is_told(foundry_command: CommandLine, make: object, message: str, json_wanted: bool) -> None:
    make(foundry_command.work / "s")  # type: ignore[operator]
    result = foundry_command.run("pack", "-o", "a.fdry", "s", *(["--json"] if json_wanted else []))
    assert result.returncode == 125
    assert message in (result.stdout if json_wanted else result.stderr)
    if json_wanted:
        assert json.loads(result.stdout)["error"]["code"] == "spool"
        assert result.stderr == ""
    assert not (foundry_command.work / "a.fdry").exists()


def test_a_record_that_cannot_be_read_is_no_record(tmp_path: Path) -> None:
    whole = record.Record({"argv": "[]"}, "/bin/true", "/x.fdry", False, False, 1)
    record.write(tmp_path, whole)
    assert record.read(tmp_path) == whole
    path = tmp_path / record.NAME
    assert path.stat().st_mode & 0o777 == 0o600
    for text in ("", "[]", "{}", '{"context": 1}', path.read_text().replace('"format": 1', '"format": 2'), "\xff"):
        path.write_text(text, encoding="latin-1")
        assert record.read(tmp_path) is None
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert record.read(tmp_path) is None


def test_what_was_left_long_ago_goes_with_the_next_capture(foundry_command: CommandLine) -> None:
    folder = killed(foundry_command, "-o", "a.fdry")
    long_ago = time.time() - 8 * 24 * 3600
    for path in (folder / "spool").rglob("*"):
        os.utime(path, (long_ago, long_ago))
    assert foundry_command.run("capture", "-o", "b.fdry", "--", *program()).returncode == 0
    assert sessions(foundry_command) == []


def test_a_capture_that_recorded_nothing_leaves_nothing(foundry_command: CommandLine) -> None:
    process = foundry_command.start("capture", "-o", "a.fdry", "--", "sh", "-c", "echo up; sleep 60")
    read_until(process.stdout, "up")
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: sessions(foundry_command) == [])


def test_killed_restores_leave_nothing(foundry_command: CommandLine) -> None:
    foundry_command.run("capture", "-o", "a.fdry", "--", *program())
    allowed = ("--allow", "mismatch-arguments")
    words = foundry_command.words("restore", "--json", *allowed, "a.fdry", "--", *program("--serve"))
    process = subprocess.Popen(
        words,
        env=foundry_command.environment,
        cwd=foundry_command.work,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    read_until(process.stdout, "serving")
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: foundry_command.left_overs() == [])
