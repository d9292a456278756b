"""`foundry capture` with a program that writes its spool itself."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, program, read_until, shell, wait_until

from foundry import archive


def test_one_line_says_what_was_written(foundry_command: CommandLine) -> None:
    result = foundry_command.run("capture", "-o", "a b.fdry", "--", *program("--graphs", 2))
    target = foundry_command.work / "a b.fdry"
    assert result.returncode == 0
    assert result.stdout == ""
    size = archive_size(target)
    assert result.stderr == f"foundry: wrote `{target}`, {size}, 2 graphs, 0 kernel images\n"


def archive_size(path: Path) -> str:
    from foundry.session.words import readable_size

    return readable_size(path.stat().st_size)


def test_quiet_says_nothing(foundry_command: CommandLine) -> None:
    result = foundry_command.run("capture", "-q", "-o", "a.fdry", "--", *program())
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_simulated_capture_says_so(foundry_command: CommandLine) -> None:
    result = foundry_command.run("capture", "--", *program("--simulated"))
    assert "simulated" in result.stderr


def test_files_and_folders_are_private(foundry_command: CommandLine) -> None:
    old_mask = os.umask(0)
    try:
        foundry_command.run("capture", "--", *program())
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE(foundry_command.store.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in foundry_command.archives()] == [0o600]


def test_an_archive_is_not_replaced_without_force(foundry_command: CommandLine) -> None:
    target = foundry_command.work / "a.fdry"
    target.write_text("precious")
    result = foundry_command.run("capture", "-o", target, "--", *program("--say", "it ran"))
    assert result.returncode == 125
    assert result.stdout == "", "the command was not started"
    assert "hint: replace it with `--force`" in result.stderr
    assert target.read_text() == "precious"
    assert foundry_command.run("capture", "-f", "-o", target, "--", *program()).returncode == 0
    assert archive.summary(target).graphs == 1


def test_in_the_store_the_same_command_replaces_its_archive_and_another_has_its_own(
    foundry_command: CommandLine,
) -> None:
    for graphs in (1, 2, 2):
        assert foundry_command.run("capture", "--", *program("--graphs", graphs)).returncode == 0
    summaries = [archive.summary(path) for path in foundry_command.archives()]
    assert sorted(summary.graphs for summary in summaries) == [1, 2]
    assert all(re.fullmatch(r"fake_program-[0-9a-f]{16}\.fdry", path.name) for path in foundry_command.archives())


def test_a_command_that_fails_keeps_what_it_captured(foundry_command: CommandLine) -> None:
    result = foundry_command.run("capture", "-o", "a.fdry", "--", *program("--kill", 11))
    target = foundry_command.work / "a.fdry"
    assert result.returncode == 139
    assert f"the command ended with signal 11 (SIGSEGV); what it captured is kept in `{target}`" in result.stderr
    assert archive.summary(target).graphs == 1


def test_a_failure_does_not_replace_a_good_archive_in_the_store(foundry_command: CommandLine) -> None:
    code = foundry_command.work / "program.py"
    words = [sys.executable, str(code)]
    text = Path(program()[1]).read_text()
    code.write_text(text)
    assert foundry_command.run("capture", "--", *words).returncode == 0
    code.write_text(text.replace("sys.exit(chosen.exit)", "sys.exit(9)"))
    assert foundry_command.run("capture", "--", *words).returncode == 9
    names = [path.name for path in foundry_command.archives()]
    assert [name.endswith(".incomplete.fdry") for name in names] == [False, True]


def test_the_exit_code_and_archive_are_told_as_json_on_the_last_line(foundry_command: CommandLine) -> None:
    result = foundry_command.run("capture", "--json", "-o", "a.fdry", "--", *program("--exit", 3, "--say", "mine"))
    report = json.loads(result.stderr.splitlines()[-1])
    assert result.stdout == "mine\n"
    assert (result.returncode, report["exit_code"], report["command_exit_code"]) == (3, 3, 3)
    assert report["archive"] == str(foundry_command.work / "a.fdry")
    assert (report["graphs"], report["simulated"]) == (1, False)


class TestReady:
    def test_the_archive_is_written_while_the_server_serves(self, foundry_command: CommandLine) -> None:
        target = foundry_command.work / "a.fdry"
        process = foundry_command.start("capture", "-o", target, "--", *program("--serve", "--commit"))
        wait_until(target.exists)
        assert process.poll() is None
        assert archive.summary(target).graphs == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr and process.stderr.read().count("wrote") == 1

    def test_it_is_written_again_at_the_end_if_there_is_more(self, foundry_command: CommandLine) -> None:
        target = foundry_command.work / "a.fdry"
        words = program("--serve", "--commit", "--late-graphs", 2)
        process = foundry_command.start("capture", "-o", target, "--", *words)
        wait_until(target.exists)
        process.send_signal(signal.SIGUSR1)
        read_until(process.stdout, "more graphs")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert archive.summary(target).graphs == 3

    def test_a_url_that_answers_makes_it_ready(self, foundry_command: CommandLine) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        url = f"http://127.0.0.1:{port}/health"
        result = foundry_command.run(
            "capture", "--ready", url, "--stop-when-ready", "-o", "a.fdry", "--",
            *program("--serve", "--port-file", port),
            environment={"http_proxy": "http://127.0.0.1:1"},
        )  # fmt: skip
        assert result.returncode == 0
        assert f"ready ({url} answers)" in result.stderr
        assert result.stdout == "serving\ngot SIGTERM\n"
        assert archive.summary(foundry_command.work / "a.fdry").graphs == 1

    def test_a_line_makes_it_ready(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run(
            "capture", "--ready-log", "^serv.ng$", "--stop-when-ready", "-o", "a.fdry", "--", *program("--serve")
        )
        assert result.returncode == 0
        assert "ready (it printed `serving`)" in result.stderr

    def test_a_line_on_standard_error_counts_too(self, foundry_command: CommandLine) -> None:
        command = shell(f"printf '\\033[32mINFO\\033[0m up\\n' >&2; exec {shlex.join(program('--serve'))}")
        result = foundry_command.run("capture", "--ready-log", "^INFO up", "--stop-when-ready", "--", *command)
        assert result.returncode == 0
        assert "\x1b[32mINFO\x1b[0m up\n" in result.stderr

    def test_ready_without_any_cuda_process_is_a_failure(self, foundry_command: CommandLine) -> None:
        command = shell("echo up; exec sleep 60")
        result = foundry_command.run("capture", "--ready-log", "up", "--stop-when-ready", "--", *command)
        assert result.returncode == 125
        assert "no hooked CUDA process seen" in result.stderr

    def test_a_server_that_is_never_ready_is_stopped(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run(
            "capture", "--ready-log", "never", "--ready-timeout", "0.5", "--stop-when-ready", "--",
            *program("--serve"),
        )  # fmt: skip
        assert result.returncode == 125
        assert "not ready after 0.5 s" in result.stderr

    def test_without_stopping_it_serves_on(self, foundry_command: CommandLine) -> None:
        process = foundry_command.start(
            "capture", "--ready-log", "never", "--ready-timeout", "0.2", "--", *program("--serve")
        )
        read_until(process.stderr, "not ready after 0.2 s")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert len(foundry_command.archives()) == 1

    @pytest.mark.parametrize("arguments", [["--ready", "nonsense"], ["--ready-log", "("]])
    def test_nonsense_is_refused_before_the_start(self, foundry_command: CommandLine, arguments: list[str]) -> None:
        result = foundry_command.run("capture", *arguments, "--", *program("--say", "it ran"))
        assert (result.returncode, result.stdout) == (2, "")


class TestOutput:
    def test_bytes_pass_unchanged_and_at_once(self, foundry_command: CommandLine) -> None:
        code = (
            "import os, sys\n"
            "os.write(1, b'no line end')\n"
            "sys.stdin.readline()\n"
            "os.write(1, bytes(range(256)) * 400)\n"
            "os.write(2, b'\\r\\n\\xff')\n"
        )
        words = foundry_command.words("capture", "--ready-log", "x", "-q", "--", sys.executable, "-c", code)
        process = subprocess.Popen(
            words,
            env=foundry_command.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout and process.stdin and process.stderr
        assert process.stdout.read(11) == b"no line end"
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.stdout.read() == bytes(range(256)) * 400
        assert process.stderr.read().startswith(b"\r\n\xff")
        process.wait(30)

    def test_without_ready_log_the_command_has_our_own_files(self, foundry_command: CommandLine) -> None:
        with (foundry_command.work / "out").open("w") as out:
            code = "import os; print(os.fstat(1).st_ino, flush=True)"
            words = foundry_command.words("capture", "-q", "--", sys.executable, "-c", code)
            subprocess.run(words, env=foundry_command.environment, stdout=out, stderr=subprocess.DEVNULL)
        path = foundry_command.work / "out"
        assert path.read_text() == f"{path.stat().st_ino}\n"

    def test_standard_input_reaches_the_command(self, foundry_command: CommandLine) -> None:
        words = foundry_command.words("capture", "-q", "--", "cat")
        result = subprocess.run(words, env=foundry_command.environment, input="in\n", capture_output=True, text=True)
        assert result.stdout == "in\n"


class TestEnvironment:
    def test_other_preloaded_libraries_are_kept(self, foundry_command: CommandLine, libraries: Path) -> None:
        other = foundry_command.work / "libother.so"
        other.write_bytes((libraries / "libfoundry_hook.so").read_bytes())
        result = foundry_command.run(
            "capture", "-q", "--", "sh", "-c", "echo $LD_PRELOAD", environment={"LD_PRELOAD": str(other)}
        )
        assert result.stdout == f"{libraries / 'libfoundry_hook.so'}:{other}\n"

    def test_a_command_that_clears_its_environment_gives_no_archive(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("capture", "--", "env", "-i", *program())
        assert result.returncode == 125
        assert "no hooked CUDA process seen" in result.stderr
        result = foundry_command.run("capture", "--", *shell(f"unset LD_PRELOAD; {shlex.join(program())}"))
        assert result.returncode == 125
        assert foundry_command.archives() == []

    def test_the_hook_may_lie_under_a_path_with_spaces(self, foundry_command: CommandLine, libraries: Path) -> None:
        folder = foundry_command.folder / "with a space:and more"
        folder.mkdir()
        (folder / "libfoundry_hook.so").write_bytes((libraries / "libfoundry_hook.so").read_bytes())
        code = (
            "print([line.split(None, 5)[5] for line in open('/proc/self/maps') if 'foundry_hook' in line][0].strip())"
        )
        result = foundry_command.run(
            "capture", "-q", "--", sys.executable, "-c", code, environment={"FOUNDRY_LIBRARY_DIR": str(folder)}
        )
        assert result.stdout == f"{folder / 'libfoundry_hook.so'}\n"

    @pytest.mark.parametrize("home", [None, "/not/there"])
    def test_without_a_home_archives_go_to_the_temporary_folder(
        self, foundry_command: CommandLine, home: str | None
    ) -> None:
        del foundry_command.environment["XDG_CACHE_HOME"]
        foundry_command.environment["HOME"] = "/proc/not-there" if home else "/dev/null/home"
        result = foundry_command.run("capture", "--", *program())
        assert result.returncode == 0
        fallback = foundry_command.folder / "tmp" / f"foundry-{os.geteuid()}"
        assert f"new archives and images go to `{fallback}`" in result.stderr
        assert len(list(fallback.glob("*.fdry"))) == 1
        listed = foundry_command.run("list")
        assert "fake_program" in listed.stdout

    def test_secrets_are_not_in_the_archive(self, foundry_command: CommandLine) -> None:
        secret = "correct-horse-battery"
        result = foundry_command.run(
            "capture", "-o", "a.fdry", "--", *program("--api-key", secret), environment={"HF_TOKEN": "hf_abcdefghijkl"}
        )
        assert result.returncode == 0
        inspected = foundry_command.run("inspect", "--json", "a.fdry").stdout
        assert "***" in inspected
        assert secret not in inspected
        assert "hf_abcdefghijkl" not in inspected


class TestBadPlaces:
    def test_no_such_folder(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("capture", "-o", "no/such/x.fdry", "--", *program("--say", "it ran"))
        assert (result.returncode, result.stdout) == (125, "")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_working_folder_that_cannot_be_written(self, foundry_command: CommandLine) -> None:
        foundry_command.work.chmod(0o500)
        result = foundry_command.run("capture", "-o", "x.fdry", "--", *program("--say", "it ran"))
        assert (result.returncode, result.stdout) == (125, "")
        assert foundry_command.run("capture", "--", *program()).returncode == 0

    def test_a_full_disk_leaves_the_older_archive(self, foundry_command: CommandLine) -> None:
        target = foundry_command.work / "a.fdry"
        target.write_text("precious")
        process = foundry_command.start(
            "capture", "-f", "-o", target, "--", *program("--serve", "--graphs", 300), start_new_session=True
        )
        read_until(process.stdout, "serving")
        # Only now, and only for foundry itself: the spool is written, the archive is not.
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (600, 600))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 125
        assert target.read_text() == "precious"
        assert list(foundry_command.work.iterdir()) == [target]
        assert re.search(r"\d+ bytes|\d kB", err)

    def test_two_captures_to_one_file(self, foundry_command: CommandLine) -> None:
        results: list[subprocess.CompletedProcess[str]] = []

        def capture(graphs: int) -> None:
            words = program("--graphs", graphs)
            results.append(foundry_command.run("capture", "-o", "same.fdry", "--", *words))

        threads = [threading.Thread(target=capture, args=(number,)) for number in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(result.returncode for result in results) == [0, 125, 125]
        assert archive.summary(foundry_command.work / "same.fdry").graphs in (1, 2, 3)
        assert [path.name for path in foundry_command.work.iterdir()] == ["same.fdry"]

    def test_a_missing_hook_is_named(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("capture", "--", "true", environment={"FOUNDRY_LIBRARY_DIR": "/not/there"})
        assert result.returncode == 125
        assert "the hook is missing: no file `/not/there/libfoundry_hook.so`" in result.stderr
