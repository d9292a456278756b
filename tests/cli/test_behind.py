"""A restore from an archive whose images are still to be made: they are made behind the start of the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, read_until, wait_until

from foundry import native

SERVER = Path(__file__).parents[1] / "engines" / "decode_server.py"
HELD_BACK = Path(__file__).parents[1] / "helpers" / "held_back.py"
WORDS = [sys.executable, str(SERVER), "--quiet", "--once"]
ALLOWED = ("--allow", "mismatch-arguments")
NAME = "foundry-images"
BEGUN = "import os, sys, time; print('begun', os.getpid(), flush=True)"
DAEMON = (
    "import os, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid(); os.closerange(0, 1024)\n"
    "while not os.path.isdir(os.environ['FOUNDRY_IMAGE']): time.sleep(0.01)\n"
)


class Scene:
    """An archive of the demo server, and a cache with no images."""

    def __init__(self, folder: Path, archive: Path, output: str) -> None:
        self.command = CommandLine(folder, native.library_directory())
        self.archive, self.output, self.go = archive, output, folder / "go"

    def words(self, how: str, *options: object, words: list[str]) -> list[str]:
        allowed = () if words == WORDS else ALLOWED
        given = ("restore", "--sim", *allowed, *options, self.archive, "--", *words)
        return [sys.executable, str(HELD_BACK), how, *map(str, given)]

    def start(self, how: str, *options: object, words: list[str] = WORDS, **more: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(how, *options, words=words),
            env=self.command.environment,
            cwd=self.command.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,  # type: ignore[call-overload]
        )

    def run(self, how: str, *options: object, words: list[str] = WORDS) -> tuple[str, str]:
        process = self.start(how, *options, words=words)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out, err

    def report(self, how: str, *options: object, words: list[str] = WORDS) -> dict[str, object]:
        out, err = self.run(how, "--json", *options, words=words)
        assert words != WORDS or out == self.output
        found: dict[str, object] = json.loads(err.splitlines()[-1])
        return found

    @property
    def until(self) -> str:
        return f"until:{self.go}"

    def images(self) -> list[str]:
        """What stands where images are: folders of them, and half made ones."""
        folder = self.command.store / "images"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def makers(self) -> list[int]:
        """Processes that make images in this cache."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "comm").read_text().strip() == NAME:
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    ours = str(self.command.cache).encode() in (entry / "environ").read_bytes()
                    found += [int(entry.name)] if ours and state not in "ZX" else []
            except OSError:
                continue
        return found

    def made(self) -> int:
        path = self.command.cache / "made"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("behind")
    command = CommandLine(folder, native.library_directory())
    done = command.run("capture", "--sim", "-q", "-o", folder / "a.fdry", "--", *WORDS)
    assert done.returncode == 0, done.stderr
    return folder / "a.fdry", done.stdout


@pytest.fixture
def scene(tmp_path: Path, captured: tuple[Path, str]) -> Iterator[Scene]:
    found = Scene(tmp_path, *captured)
    yield found
    wait_until(lambda: not found.makers())
    assert [name for name in found.images() if name.startswith(".")] == []


def test_the_command_starts_at_once_and_gets_its_graphs_when_the_image_is_there(scene: Scene) -> None:
    process = scene.start(scene.until, "--report", "r.json", words=["sh", "-c", 'echo begun; exec "$@"', "sh", *WORDS])
    read_until(process.stdout, "begun")
    wait_until(scene.makers)
    time.sleep(1.0)
    assert process.poll() is None and scene.made() == 0
    scene.go.touch()
    out, err = process.communicate(timeout=60)
    report = json.loads((scene.command.work / "r.json").read_text())
    assert (out, report["graphs_restored"], report["started_without_restore"]) == (scene.output, 5, None)
    assert report["processes"][0]["seconds"]["image_wait"] > 0.2
    assert "5 graphs restored" in err
    # The next start has it.
    assert scene.report("fault")["graphs_restored"] == 5


def test_it_becomes_the_command_which_has_no_child_and_no_file_of_it(scene: Scene) -> None:
    text = BEGUN + (
        "; files = {int(name) for name in os.listdir('/proc/self/fd')}"
        "; files = [file for file in files if file > 2 and os.path.exists(f'/proc/self/fd/{file}')]"
        "; print([os.readlink(f'/proc/self/fd/{file}') for file in files])"
        "; print(open(f'/proc/self/task/{os.getpid()}/children').read().split())"
    )
    process = scene.start(scene.until, "--no-early", words=[sys.executable, "-c", text])
    out, err = process.communicate(timeout=60)
    begun, files, children = out.splitlines()
    assert (begun, children, err) == (f"begun {process.pid}", "[]", "")
    assert files.count("'") == 2 and files.endswith("/lock']") and "building" not in files, "the session's lock alone"


def test_where_standard_files_are_closed(scene: Scene) -> None:
    words = scene.words("until:/", "-q", words=WORDS)
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- 2>&-', "sh", *words],
        env=scene.command.environment,
        cwd=scene.command.work,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (closed.returncode, closed.stdout, scene.made()) == (0, scene.output, 1)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_command_that_ends_before_leaves_nothing(scene: Scene, options: tuple[str, ...]) -> None:
    begin = time.monotonic()
    scene.run(scene.until, *options, words=["true"])
    assert time.monotonic() - begin < 10, "nobody waited for the image"
    wait_until(lambda: not scene.makers())
    assert scene.images() == []


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_ends_foundry_ends_the_making(scene: Scene, options: tuple[str, ...], number: signal.Signals) -> None:
    process = scene.start(scene.until, *options, words=[sys.executable, "-c", BEGUN + "; time.sleep(60)"])
    read_until(process.stdout, "begun")
    wait_until(scene.makers)
    wait_until(scene.images)
    process.send_signal(number)
    process.communicate(timeout=30)
    wait_until(lambda: not scene.makers())
    assert scene.images() == []


def test_a_command_that_is_ended_while_it_waits(scene: Scene) -> None:
    process = scene.start(scene.until)
    wait_until(scene.images)
    time.sleep(0.5)
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM


def test_a_signal_from_the_terminal_does_not_reach_the_making(scene: Scene) -> None:
    text = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); " + BEGUN + "; sys.stdin.read(); time.sleep(1)"
    process = scene.start(scene.until, words=[sys.executable, "-c", text], start_new_session=True)
    read_until(process.stdout, "begun")
    wait_until(scene.images)
    os.killpg(process.pid, signal.SIGINT)
    scene.go.touch()
    wait_until(lambda: scene.images() and not scene.images()[0].startswith("."))
    process.communicate(timeout=30)


def test_a_daemon_that_closed_all_its_files_gets_its_image(scene: Scene) -> None:
    scene.run(scene.until, words=[sys.executable, "-c", DAEMON])
    time.sleep(1.5)
    assert scene.makers() and scene.made() == 0
    scene.go.touch()
    wait_until(lambda: not scene.makers())
    assert scene.made() == 1


@pytest.mark.parametrize(
    ("how", "code", "reason"),
    [
        ("full", "disk-full", "disk-full: cannot write the restore image: the file system is full (hint: make room)"),
        ("fault", "failed", "failed: a fault of ours"),
    ],
)
def test_what_goes_wrong_is_a_plain_start_that_says_why(scene: Scene, how: str, code: str, reason: str) -> None:
    report = scene.report(how)
    assert (report["restored"], report["code"], report["started_without_restore"]) == (False, code, reason)
    assert list(report["disarmed"].values()) == [reason]  # type: ignore[attr-defined]
    out, err = scene.run(how)
    assert (out, err) == (scene.output, f"foundry: warning: restore given up: {reason}\n")
    # Nothing is wrong that a later start would meet.
    assert scene.report("until:/")["graphs_restored"] == 5


def test_a_killed_maker_is_a_plain_start_and_what_it_left_goes(scene: Scene) -> None:
    out, err = scene.run("dies")
    assert out == scene.output
    assert err.startswith("foundry: warning: restore given up: cannot open `") and "No such file" in err
    assert scene.images()[0].startswith(".")
    report = scene.report("dies")
    assert (report["restored"], len(report["disarmed"])) == (False, 1)  # type: ignore[arg-type]
    assert scene.report("until:/")["graphs_restored"] == 5


def test_starts_at_once_make_it_once(scene: Scene) -> None:
    processes = [scene.start(scene.until, "--json") for _ in range(3)]
    wait_until(lambda: len(scene.makers()) == 3)
    scene.go.touch()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert (out, json.loads(err.splitlines()[-1])["graphs_restored"]) == (scene.output, 5)
    assert scene.made() == 1


@pytest.mark.parametrize("how", ["full", "fault"])
def test_a_start_that_must_restore_waits_for_the_image_before(scene: Scene, how: str) -> None:
    words = [sys.executable, "-c", BEGUN]
    process = scene.start(how, "--on-mismatch", "fail", words=words)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (125, "")
    assert "the file system is full" in err or "a fault" in err
    scene.run("until:/", "--on-mismatch", "fail", words=["true"])
    assert scene.made() == 1 and len(scene.images()) == 1


def test_a_damaged_image_is_replaced_before_the_hook_meets_it(scene: Scene) -> None:
    scene.run("until:/", "--on-mismatch", "fail", words=["true"])
    (image,) = scene.command.store.glob("images/*/*.image")
    image.write_bytes(image.read_bytes()[:-1])
    assert scene.report("until:/")["graphs_restored"] == 5
    assert scene.made() == 2


def test_whom_orphans_fall_to_makes_the_image_first(scene: Scene) -> None:
    adopting = "import sys; from foundry.launch import linux; linux.adopt_orphans(); import runpy; sys.argv.pop(0); "
    adopting += "runpy.run_path(sys.argv[0], run_name='__main__')"
    words = scene.words("until:/", words=["true"])
    words[1:1] = ["-c", adopting]
    done = subprocess.run(words, env=scene.command.environment, cwd=scene.command.work, timeout=60, check=False)
    assert done.returncode == 0
    assert scene.made() == 1 and not scene.images()[0].startswith(".")
