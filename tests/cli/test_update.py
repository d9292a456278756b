"""`foundry capture --update`: graphs are added to an archive, and those that are there stay as they were."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import growing_program
from helpers.commandline import CommandLine, read_until, wait_until

from foundry import archive, diff, native


class Growing:
    """The program, whose keys are asked for by others; each start at other handles."""

    def __init__(self, folder: Path) -> None:
        self.line = CommandLine(folder, native.library_directory())
        self.path = self.line.work / "a.fdry"
        self.seed = 0

    def command(self, keys: str, *options: object) -> list[str]:
        (self.line.work / "keys").write_text(keys)
        return ["--", sys.executable, growing_program.__file__, "--keys-file", "keys", *map(str, options)]

    def run(self, *words: object, **environment: str) -> Any:
        self.seed += 1
        return self.line.run(*words, environment={"FOUNDRY_SIM_SEED": str(self.seed), **environment})

    def capture(self, keys: str, *options: object) -> None:
        done = self.run("capture", "--sim", "-q", "-f", "-o", self.path, *self.command(keys, *options))
        assert (done.returncode, done.stderr) == (0, "")

    def update(self, keys: str, *options: object, words: tuple[str, ...] = (), **environment: str) -> Any:
        return self.run("capture", "--sim", "--update", self.path, *words, *self.command(keys, *options), **environment)

    def restored(self, keys: str, *options: object) -> Any:
        done = self.run("restore", "--sim", "-q", self.path, *self.command(keys, *options))
        return json.loads(done.stdout)["restored"]

    def keys(self) -> list[str]:
        return sorted(graph.key for process in archive.read(self.path).processes for graph in process.graphs)


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


def test_what_was_captured_later_comes_back_with_what_was_there(growing: Growing) -> None:
    growing.capture("4 8")
    before = archive.read(growing.path)
    done = growing.update("4 8 16")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"outputs": {"4": 416, "8": 864, "16": 1856}, "restored": ["4", "8"]}
    assert "foundry: 1 graph added\n" in done.stderr
    assert growing.keys() == ["16", "4", "8"]
    assert growing.restored("4 8 16") == ["4", "8", "16"]
    assert growing.run("verify", growing.path).returncode == 0
    told = [str(one) for one in diff.compare(before, archive.read(growing.path))]
    assert told == ["python3-0: graph grown/16: graph: none -> present".replace("python3", name_of(before))]


def name_of(capture: Any) -> str:
    role: str = capture.processes[0].role
    return role.removesuffix("-0")


def test_again_and_again(growing: Growing) -> None:
    growing.capture("4")
    for keys in ("4 8", "4 8 16", "4 8 16 32"):
        assert growing.update(keys).returncode == 0
    assert growing.restored("4 8 16 32") == ["4", "8", "16", "32"]


def test_what_nobody_asks_for_in_the_later_run_stays(growing: Growing) -> None:
    growing.capture("4 8", "--static")
    assert growing.update("32 16", "--static").returncode == 0
    assert growing.keys() == ["16", "32", "4", "8"]
    assert growing.restored("8 16 4 32", "--static") == ["8", "16", "4", "32"]


def test_nothing_new_changes_nothing(growing: Growing) -> None:
    growing.capture("4 8")
    before = growing.path.read_bytes()
    done = growing.update("4 8")
    assert (done.returncode, growing.path.read_bytes()) == (0, before)
    assert "foundry: 0 graphs added\n" in done.stderr


@pytest.mark.parametrize("options", [(), ("--stop-when-ready",)])
def test_of_a_server_at_its_end_at_the_latest(growing: Growing, options: tuple[str, ...]) -> None:
    words = ("capture", "--sim", "-q", "--stop-when-ready", "-f", "-o", growing.path)
    assert growing.run(*words, *growing.command("4 8", "--static", "--serve")).returncode == 0
    server = growing.line.start(
        *("capture", "--sim", "--update", growing.path, *options), *growing.command("16 8", "--static", "--serve")
    )
    read_until(server.stdout, "outputs")
    if not options:
        time.sleep(1.5)  # so that the engine has built what nobody asks for
        server.terminate()
    _, talk = server.communicate(timeout=30)
    assert "does not fit" not in talk
    assert growing.keys() == ["16", "4", "8"]


def test_beside_a_server_that_asks_for_all(growing: Growing) -> None:
    words = ("capture", "--sim", "-q", "--stop-when-ready", "-f", "-o", growing.path)
    assert growing.run(*words, *growing.command("4 8", "--static", "--serve")).returncode == 0
    server = growing.line.start(
        "capture", "--sim", "--update", growing.path, *growing.command("16 8 4", "--static", "--serve")
    )
    try:
        read_until(server.stdout, "outputs")
        wait_until(lambda: growing.keys() == ["16", "4", "8"])
    finally:
        server.terminate()
        server.communicate(timeout=30)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("+4096 4 8 16", "graph grown/4 did not come back: buffer: recorded"),
        ("4 16 8", "graph grown/8 did not come back: own: recorded"),
        ("4 16", "graph grown/8 did not come back: it was not built in this run"),
    ],
)
def test_a_run_that_does_not_fit_changes_nothing(growing: Growing, keys: str, reason: str) -> None:
    growing.capture("4 8")
    before = growing.path.read_bytes()
    done = growing.update(keys)
    assert (done.returncode, growing.path.read_bytes()) == (5, before)
    assert "foundry: error: the archive stays as it is, since this run does not fit it: " in done.stderr
    assert reason in done.stderr
    assert json.loads(done.stdout)["outputs"]["16"] == 1856


def test_a_process_that_gives_its_restore_up_changes_nothing(growing: Growing) -> None:
    growing.capture("4 8")
    before = growing.path.read_bytes()
    done = growing.update("4 8 16", FOUNDRY_SIM_GPU="NVIDIA Simulated H200:9.0:114")
    assert (done.returncode, growing.path.read_bytes()) == (5, before)
    assert json.loads(done.stdout)["restored"] == []
    assert "does not fit it: " in done.stderr
    assert "mismatch-multiprocessors" in done.stderr


def test_another_command_is_refused_before_it_starts(growing: Growing) -> None:
    growing.capture("4 8")
    before = growing.path.read_bytes()
    done = growing.update("4 8 16", "--static")
    assert (done.returncode, done.stdout, growing.path.read_bytes()) == (5, "", before)
    assert "mismatch-arguments" in done.stderr


def test_a_command_that_fails_leaves_the_archive(growing: Growing) -> None:
    growing.capture("4 8", "--exit", 0)
    before = growing.path.read_bytes()
    (growing.line.work / "keys").write_text("4 8 nonsense")
    done = growing.run(
        *("capture", "--sim", "--update", growing.path, "--", sys.executable, growing_program.__file__),
        *("--keys-file", "keys", "--exit", "0"),
        FOUNDRY_SIM_FAIL="cuStreamBeginCapture:1",
    )
    assert growing.path.read_bytes() == before
    assert done.returncode in (0, 1)


@pytest.mark.parametrize(
    "option",
    [("-o", "b.fdry"), ("--prove",), ("--scrub",), ("--witness",), ("--thin",), ("--prefetch",)],
)
def test_what_does_not_go_with_it(growing: Growing, option: tuple[str, ...]) -> None:
    done = growing.update("4", words=option)
    assert done.returncode == 2
    assert "`--update` and `--" in done.stderr


def test_no_archive_there(growing: Growing) -> None:
    done = growing.update("4")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no archive at" in done.stderr


def test_what_else_an_archive_holds_is_kept(growing: Growing) -> None:
    (growing.line.work / "data").write_text("x")
    done = growing.run("capture", "--sim", "-q", "--prefetch", "-o", growing.path, *growing.command("4 8"))
    assert done.returncode == 0
    before = archive.read(growing.path)
    assert before.start_files
    assert growing.update("4 8 16").returncode == 0
    after = archive.read(growing.path)
    assert (after.start_files, after.context) == (before.start_files, before.context)


def test_as_json(growing: Growing) -> None:
    growing.capture("4")
    done = growing.update("4 8", words=("--json",))
    report = json.loads(done.stderr.splitlines()[-1])
    assert (report["graphs"], report["error"]) == (2, None)
    done = growing.update("8 4", words=("--json",))
    assert "does not fit it" in json.loads(done.stderr.splitlines()[-1])["error"]


def test_files_of_jit_caches_are_put_in_place_and_added(growing: Growing) -> None:
    """The command makes what is not there of the kernel that it needs, and says so, as a compiler would."""
    line = (
        "k=$HOME/.triton/cache/$(cat kernel); if test -e $k/a.cubin; then echo warm >&2; else echo cold >&2; "
        f"mkdir -p $k; echo $k > $k/a.cubin; fi; exec {sys.executable} {growing_program.__file__} --keys-file keys"
    )
    words = ("--", "sh", "-c", line)

    def of(kernel: str, keys: str, *verb: object) -> Any:
        (growing.line.work / "kernel").write_text(kernel)
        (growing.line.work / "keys").write_text(keys)
        shutil.rmtree(growing.line.folder / "home" / ".triton", ignore_errors=True)
        return growing.run(*verb, *words)

    assert "cold" in of("ONE", "4", "capture", "--sim", "-o", growing.path).stderr
    done = of("ONE", "4 8", "capture", "--sim", "--update", growing.path)
    assert "warm" in done.stderr
    assert "1 graph added" in done.stderr
    done = of("TWO", "4 8 16", "capture", "--sim", "--update", growing.path)
    assert "cold" in done.stderr
    assert [(file.cache, file.path) for file in archive.read(growing.path).files] == [
        ("triton", "ONE/a.cubin"),
        ("triton", "TWO/a.cubin"),
    ]
    for kernel in ("ONE", "TWO"):
        assert "warm" in of(kernel, "4 8 16", "restore", "--sim", growing.path).stderr
    assert "cold" in of("ONE", "4", "capture", "--sim", "--update", growing.path, "--no-caches").stderr
