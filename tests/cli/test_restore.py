"""`foundry restore` with a program that writes its spool itself."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, program, read_until, wait_until

from foundry.compat.codes import RULES

TELL = (
    "import os, json; print(json.dumps({name: value for name, value in os.environ.items() "
    "if name.startswith(('FOUNDRY_', 'LD_'))}))"
)

ALLOWED = ("--allow", "mismatch-arguments")
"""For commands that the archive was not captured from."""


@pytest.fixture
def archive_path(foundry_command: CommandLine) -> Path:
    """An archive of the fake program, in the work folder."""
    assert foundry_command.run("capture", "-q", "-o", "a.fdry", "--", *program("--graphs", 2)).returncode == 0
    return foundry_command.work / "a.fdry"


def capture_in_store(foundry_command: CommandLine, *arguments: object) -> Path:
    before = set(foundry_command.archives())
    assert foundry_command.run("capture", "-q", "--", *program(*arguments)).returncode == 0
    return next(iter(set(foundry_command.archives()) - before))


def make_images(foundry_command: CommandLine, path: Path, **environment: str) -> list[Path]:
    """Have the images made before a command starts, as for one that is not to start without them."""
    words = ("restore", "-q", "--on-mismatch", "fail", *ALLOWED, path, "--", "true")
    assert foundry_command.run(*words, environment=environment).returncode == 0
    return sorted(foundry_command.store.glob("images/*/*.image"))


class TestFinding:
    def test_the_store_knows_the_command(self, foundry_command: CommandLine) -> None:
        capture_in_store(foundry_command)
        result = foundry_command.run("restore", "--json", "--", *program())
        assert json.loads(result.stderr.splitlines()[-1])["restored"] is True

    def test_another_command_is_not_given_its_archive(self, foundry_command: CommandLine) -> None:
        capture_in_store(foundry_command)
        other = program("--say", "plain")
        result = foundry_command.run("restore", "--", *other)
        assert (result.returncode, result.stdout) == (0, "plain\n")
        assert result.stderr == (
            "foundry: warning: no archive for this command; starting without restore "
            f"(hint: make one: `foundry capture -- {shlex.join(other)}`)\n"
        )

    def test_failing_instead(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("restore", "--on-mismatch", "fail", "--", *program("--say", "plain"))
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("foundry: error: no archive for this command\n\nhint: make one:")

    def test_the_same_command_from_another_folder_is_named(self, foundry_command: CommandLine) -> None:
        path = capture_in_store(foundry_command)
        elsewhere = foundry_command.folder / "elsewhere"
        elsewhere.mkdir()
        result = foundry_command.run("restore", "--", *program(), cwd=elsewhere)
        assert result.returncode == 0
        assert f"hint: name it: `foundry restore {path} -- " in result.stderr

    def test_an_explicit_file_wins(self, foundry_command: CommandLine, archive_path: Path) -> None:
        capture_in_store(foundry_command)
        result = foundry_command.run("restore", archive_path, "--json", "--", *program())
        assert json.loads(result.stderr.splitlines()[-1])["archive"] == str(archive_path)

    def test_no_such_file(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("restore", "no.fdry", "--", *program("--say", "plain"))
        assert (result.returncode, result.stdout) == (0, "plain\n")
        assert result.stderr.startswith("foundry: warning: no archive at `")
        result = foundry_command.run("restore", "no.fdry", "--on-mismatch=fail", "--", *program("--say", "plain"))
        assert (result.returncode, result.stdout) == (1, "")


class TestStart:
    def test_foundry_becomes_the_command(self, foundry_command: CommandLine, archive_path: Path) -> None:
        process = foundry_command.start(
            "restore", *ALLOWED, archive_path, "--", sys.executable, "-c", "import os; print(os.getpid())"
        )
        out, _ = process.communicate(timeout=30)
        assert int(out) == process.pid

    def test_the_command_is_told_where_its_image_is(
        self, foundry_command: CommandLine, archive_path: Path, libraries: Path
    ) -> None:
        make_images(foundry_command, archive_path)
        words = ("restore", "-q", *ALLOWED, archive_path, "--", sys.executable, "-c", TELL)
        told = json.loads(foundry_command.run(*words).stdout)
        told.pop("FOUNDRY_TRACEBACK")
        told.pop("FOUNDRY_LIBRARY_DIR")
        assert told.pop("FOUNDRY_COMMAND").startswith("self:")
        image = Path(told.pop("FOUNDRY_IMAGE"))
        assert sorted(path.name for path in image.iterdir()) == ["early", "libraries.json", "python-0.image", "whole"]
        assert image.is_relative_to(foundry_command.store / "images")
        spool, status = Path(told.pop("FOUNDRY_SPOOL")), Path(told.pop("FOUNDRY_STATUS"))
        assert spool.parent == status.parent
        assert spool.parent.parent == foundry_command.store / "sessions"
        assert told == {
            "LD_PRELOAD": str(libraries / "libfoundry_hook.so"),
            "FOUNDRY_MODE": "restore",
            "FOUNDRY_QUIET": "1",
            "FOUNDRY_ALLOW": "mismatch-arguments",
        }

    def test_a_plain_start_has_nothing_of_ours(self, foundry_command: CommandLine) -> None:
        outer = {"LD_PRELOAD": "/x/libfoundry_hook.so", "FOUNDRY_MODE": "capture", "FOUNDRY_SPOOL": "/x"}
        result = foundry_command.run("restore", "-q", "--", sys.executable, "-c", TELL, environment=outer)
        assert json.loads(result.stdout).keys() == {"FOUNDRY_TRACEBACK", "FOUNDRY_LIBRARY_DIR"}

    def test_images_are_private_and_made_once(self, foundry_command: CommandLine, archive_path: Path) -> None:
        images = make_images(foundry_command, archive_path)
        assert [stat.S_IMODE(path.stat().st_mode) for path in images] == [0o600]
        inode = images[0].stat().st_ino
        foundry_command.run("restore", *ALLOWED, archive_path, "--", "true")
        assert images[0].stat().st_ino == inode
        assert [path.name for path in images[0].parent.parent.iterdir()] == [images[0].parent.name]

    def test_images_with_trimmed_kernels_are_others(self, foundry_command: CommandLine, archive_path: Path) -> None:
        for asked in ({}, {"FOUNDRY_TRIM": "1"}, {"FOUNDRY_TRIM": "1"}, {}):
            make_images(foundry_command, archive_path, **asked)
        first, second = sorted(path.name for path in (foundry_command.store / "images").iterdir())
        assert second == f"{first}-trimmed"

    def test_a_damaged_image_is_made_again(self, foundry_command: CommandLine, archive_path: Path) -> None:
        (image,) = make_images(foundry_command, archive_path)
        good = image.read_bytes()
        image.write_bytes(b"damaged" + good[7:])
        assert foundry_command.run("restore", "-q", *ALLOWED, archive_path, "--", "true").stderr == ""
        assert image.read_bytes() == good

    def test_many_starts_at_once_share_the_image(self, foundry_command: CommandLine, archive_path: Path) -> None:
        processes = [
            foundry_command.start("restore", *ALLOWED, archive_path, "--json", "--", *program()) for _ in range(6)
        ]
        for process in processes:
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0
            assert json.loads(err.splitlines()[-1])["restored"] is True

    def test_session_folders_of_ended_commands_go(self, foundry_command: CommandLine, archive_path: Path) -> None:
        serving = foundry_command.start("restore", *ALLOWED, archive_path, "--", *program("--serve"))
        read_until(serving.stdout, "serving")
        for _ in range(3):
            foundry_command.run("restore", *ALLOWED, archive_path, "--", "true")
        assert len(list((foundry_command.store / "sessions").iterdir())) == 2
        serving.terminate()
        serving.communicate(timeout=30)
        foundry_command.run("restore", *ALLOWED, archive_path, "--", "true")
        assert len(list((foundry_command.store / "sessions").iterdir())) == 1


class TestRefusal:
    def test_a_damaged_archive(self, foundry_command: CommandLine, archive_path: Path) -> None:
        archive_path.write_bytes(archive_path.read_bytes()[:-20])
        result = foundry_command.run("restore", archive_path, "--", *program("--say", "plain"))
        assert (result.returncode, result.stdout) == (0, "plain\n")
        assert result.stderr.count("\n") == 1
        assert "starting without restore" in result.stderr
        result = foundry_command.run("restore", "--on-mismatch", "fail", archive_path, "--", *program("--say", "plain"))
        assert (result.returncode, result.stdout) == (1, "")

    def test_another_gpu_model(self, foundry_command: CommandLine) -> None:
        words = program("--simulated", "--gpu", "NVIDIA Other", "--say", "plain")
        foundry_command.run("capture", "-o", "a.fdry", "--", *words)
        fake_simulator(foundry_command)
        result = foundry_command.run("restore", "--sim", "--on-mismatch", "fail", "a.fdry", "--", *words)
        assert (result.returncode, result.stdout) == (5, "")
        assert result.stderr == (
            "foundry: error: the archive must not be used here: "
            "mismatch-gpu-model: GPU model: archive NVIDIA Other, here NVIDIA Simulated H200\n\n"
            "hint: capture again: `foundry capture -- CMD`; `--allow mismatch-gpu-model` restores all the same\n"
        )
        words = ("restore", "--sim", "--json", "--allow=mismatch-gpu-model", "a.fdry", "--", *words)
        report = json.loads(foundry_command.run(*words).stderr.splitlines()[-1])
        assert report["restored"] is True
        assert [item["severity"] for item in report["differences"]] == ["allowed"]

    def test_a_simulated_archive_is_not_used_for_a_real_start(self, foundry_command: CommandLine) -> None:
        words = program("--simulated", "--say", "plain")
        foundry_command.run("capture", "-o", "a.fdry", "--", *words)
        result = foundry_command.run("restore", "a.fdry", "--", *words)
        assert (result.returncode, result.stdout) == (0, "plain\n")
        assert "mismatch-simulated: simulated: archive the simulator, here a real driver" in result.stderr
        result = foundry_command.run("restore", "--json", "a.fdry", "--", *words)
        assert json.loads(result.stderr.splitlines()[-1])["code"] == "mismatch-simulated"

    def test_other_arguments_are_refused_and_told_without_secrets(
        self, foundry_command: CommandLine, archive_path: Path
    ) -> None:
        words = program("--graphs", 3, "--say", "plain", "--api-key", "secret1")
        result = foundry_command.run("restore", archive_path, "--", *words)
        assert (result.returncode, result.stdout) == (0, "plain\n")
        assert f"mismatch-arguments: command: archive {shlex.join(program('--graphs', 2))}, here" in result.stderr
        assert "starting without restore" in result.stderr
        assert "secret1" not in result.stderr
        result = foundry_command.run("restore", "--json", *ALLOWED, archive_path, "--", *words)
        report = json.loads(result.stderr.splitlines()[-1])
        assert (report["restored"], report["code"]) == (True, None)
        (difference,) = report["differences"]
        assert (difference["code"], difference["severity"]) == ("mismatch-arguments", "allowed")

    def test_where_a_server_serves_is_no_mismatch(self, foundry_command: CommandLine, archive_path: Path) -> None:
        words = program("--graphs", 2, "--api-key", "secret1")
        report = json.loads(
            foundry_command.run("restore", "--json", archive_path, "--", *words).stderr.splitlines()[-1]
        )
        assert (report["restored"], [item["severity"] for item in report["differences"]]) == (True, ["note"])

    def test_a_warning_is_told_with_its_code(self, foundry_command: CommandLine, archive_path: Path) -> None:
        words = ("--", *program("--graphs", 2))
        setting = {"CUDA_MODULE_LOADING": "EAGER"}
        told = foundry_command.run("restore", archive_path, *words, environment=setting).stderr
        assert told == (
            "foundry: warning: mismatch-variable: CUDA_MODULE_LOADING: archive not set, here EAGER "
            "(`--allow mismatch-variable` lets it pass)\n"
        )
        words = ("--allow", "mismatch-variable", archive_path, *words)
        assert foundry_command.run("restore", *words, environment=setting).stderr == ""

    def test_codes_that_cannot_be_allowed(self, foundry_command: CommandLine) -> None:
        never = sorted(code for code, rule in RULES.items() if rule.never)
        assert "mismatch-simulated" in never
        for code in never:
            result = foundry_command.run("restore", "--allow", code, "--", "true")
            assert (result.returncode, result.stdout) == (2, "")
            assert result.stderr.startswith(f"foundry: error: `--allow {code}`: it cannot be allowed: ")
        result = foundry_command.run("restore", "--allow=all", "--", "true")
        assert result.returncode == 2
        assert "there is no such code" in result.stderr and "mismatch-gpu-model" in result.stderr
        result = foundry_command.run("restore", *ALLOWED, "--allow", "", "--", "true")
        assert result.returncode == 2

    def test_a_disarmed_hook_ends_the_command_if_asked(self, foundry_command: CommandLine, archive_path: Path) -> None:
        words = program("--disarm", "driver 12.4 is too old", "--serve")
        result = foundry_command.run("restore", "--on-mismatch", "fail", *ALLOWED, archive_path, "--", *words)
        assert result.returncode == 5
        assert "python-0: driver 12.4 is too old" in result.stderr
        result = foundry_command.run("restore", "--json", *ALLOWED, archive_path, "--", *program("--disarm", "reason"))
        report = json.loads(result.stderr.splitlines()[-1])
        assert (result.returncode, report["restored"]) == (0, False)
        assert report["disarmed"] == {"python-0": "reason"}

    def test_a_taken_range_starts_it_again_with_fixed_addresses(
        self, foundry_command: CommandLine, archive_path: Path
    ) -> None:
        personality = "print('fixed', int(open('/proc/self/personality').read(), 16) & 0x40000 != 0, flush=True)\n"
        script = foundry_command.work / "taken.py"
        script.write_text(
            personality + "import runpy, sys, os\n"
            "fixed = int(open('/proc/self/personality').read(), 16) & 0x40000\n"
            "extra = [] if fixed else ['--disarm', 'range taken: device 0', '--serve']\n"
            f"sys.argv = ['fake'] + extra\n"
            f"runpy.run_path({program()[1]!r}, run_name='__main__')\n"
        )
        result = foundry_command.run("restore", "--json", *ALLOWED, archive_path, "--", sys.executable, script)
        assert result.stdout.startswith("fixed False\n")
        assert result.stdout.endswith("fixed True\n")
        report = json.loads(result.stderr.splitlines()[-1])
        assert (report["restored"], report["fixed_addresses"], report["disarmed"]) == (True, True, {})


def fake_simulator(foundry_command: CommandLine) -> None:
    libraries = Path(foundry_command.environment["FOUNDRY_LIBRARY_DIR"])
    copy = foundry_command.folder / "with-simulator"
    (copy / "sim").mkdir(parents=True)
    for name in ("libfoundry_hook.so", "sim/libcuda.so.1"):
        (copy / name).write_bytes((libraries / "libfoundry_hook.so").read_bytes())
    foundry_command.environment["FOUNDRY_LIBRARY_DIR"] = str(copy)


class TestReport:
    def test_it_says_what_was_restored(self, foundry_command: CommandLine, archive_path: Path) -> None:
        result = foundry_command.run("restore", "--report", "r.json", archive_path, "--", *program("--graphs", 2))
        assert (result.returncode, result.stderr) == (0, "")
        report = json.loads((foundry_command.work / "r.json").read_text())
        assert (report["graphs_in_archive"], report["graphs_restored"], report["graphs_given_up"]) == (2, 1, 1)
        assert report["counters"] == {"kernel_launches": 7, "stream_captures": 0}
        (process,) = report["processes"]
        assert process["given_up"] == [{"set": "decode", "key": "2", "reason": "a reason"}]
        assert process["seconds"] == {"modules": 0.02}
        assert (report["simulated"], report["command_exit_code"]) == (False, 0)

    def test_it_is_written_when_a_server_is_ready(self, foundry_command: CommandLine, archive_path: Path) -> None:
        path = foundry_command.work / "r.json"
        process = foundry_command.start(
            "restore", "--report", path, *ALLOWED, archive_path, "--", *program("--serve", "--commit")
        )
        wait_until(path.exists)
        report = json.loads(path.read_text())
        assert (report["graphs_restored"], report["command_exit_code"]) == (1, None)
        assert report["ready_seconds"] > 0
        process.terminate()
        process.communicate(timeout=30)
        assert json.loads(path.read_text())["command_exit_code"] == 0

    def test_a_plain_start_is_reported_as_one(self, foundry_command: CommandLine) -> None:
        foundry_command.run("restore", "--report", "r.json", "--", "true")
        report = json.loads((foundry_command.work / "r.json").read_text())
        assert report["restored"] is False
        assert report["started_without_restore"] == "no archive for this command"

    def test_a_report_that_cannot_be_written_does_not_fail_the_command(
        self, foundry_command: CommandLine, archive_path: Path
    ) -> None:
        result = foundry_command.run("restore", "--report", "no/such/r.json", archive_path, "--", *program("--exit", 4))
        assert result.returncode == 4
        assert "cannot write the report" in result.stderr


SLOW_MODULES = {
    "typer", "rich", "click", "pydantic", "numpy", "asyncio", "urllib.request", "email",
    "importlib.metadata", "ctypes.util", "concurrent.futures", "logging", "hmac", "subprocess", "threading", "socket",
    "foundry.session.capture", "foundry.session.capture_run", "foundry.session.restore_parent", "foundry.model",
    "foundry.launch.supervisor",
}  # fmt: skip


def imported(command: CommandLine, *arguments: object) -> set[str]:
    """Modules that are imported before the command starts."""
    words = [sys.executable, "-X", "importtime", "-m", "foundry", *map(str, arguments)]
    result = subprocess.run(
        words, env=command.environment, cwd=command.work, capture_output=True, text=True, check=True
    )
    lines = [line for line in result.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("made", [True, False])
def test_a_start_imports_nothing_slow(foundry_command: CommandLine, archive_path: Path, made: bool) -> None:
    if made:
        make_images(foundry_command, archive_path)
    modules = imported(foundry_command, "restore", *ALLOWED, archive_path, "--", "true")
    assert ("foundry.session.builder" in modules) is not made
    assert modules & (SLOW_MODULES - {"foundry.model"}) == set()
    assert "foundry.model" not in modules or not made


def own_seconds(words: list[str], command: CommandLine) -> float:
    """Processor time, the least of several runs: other work on the machine only ever adds to it."""
    seconds = []
    for _ in range(5):
        process = subprocess.Popen(words, env=command.environment, cwd=command.work)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        seconds.append(usage.ru_utime + usage.ru_stime)
    return min(seconds)


def test_a_start_takes_less_than_150_milliseconds(foundry_command: CommandLine, archive_path: Path) -> None:
    make_images(foundry_command, archive_path)
    words = foundry_command.words("restore", "-q", *ALLOWED, archive_path, "--", "true")
    assert own_seconds(words, foundry_command) < 0.15 + own_seconds(["true"], foundry_command)
