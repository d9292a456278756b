from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from foundry.errors import AbandonedError, CommandNotExecutableError, CommandNotFoundError
from foundry.launch import child
from foundry.launch.executable import Executable
from foundry.launch.supervisor import Ended, Supervisor


def python(code: str) -> Executable:
    return Executable(sys.executable, (sys.executable, "-c", code))


def run(code: str, folder: Path, **options: object) -> Ended:
    with Supervisor(folder) as supervisor:
        return supervisor.run(python(code), dict(os.environ), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("", Ended(0, 0, False, 0)),
        ("raise SystemExit(3)", Ended(3, 0, False, 0)),
        ("import os; os.kill(os.getpid(), 11)", Ended(139, 11, False, 0)),
        ("import os; os.kill(os.getpid(), 15)", Ended(143, 15, True, 0)),
        ("raise SystemExit(130)", Ended(130, 0, True, 0)),
    ],
)
def test_how_it_ended(tmp_path: Path, code: str, expected: Ended) -> None:
    ended = run(code, tmp_path)
    assert ended == expected
    assert ended.failed == (expected.code != 0 and not expected.asked)


def test_a_fault_in_a_tick_does_not_end_the_command(tmp_path: Path) -> None:
    def tick(_: Supervisor) -> float | None:
        raise ValueError("ours")

    with Supervisor(tmp_path) as supervisor:
        code = "import time; time.sleep(0.3); raise SystemExit(4)"
        assert supervisor.run(python(code), dict(os.environ), tick=tick).code == 4
        assert isinstance(supervisor.fault, ValueError)


def test_stopping_counts_as_asked(tmp_path: Path) -> None:
    def tick(supervisor: Supervisor) -> float | None:
        supervisor.stop(signal.SIGKILL)
        return None

    ended = run("import time; time.sleep(60)", tmp_path, tick=tick)
    assert (ended.code, ended.asked, ended.failed) == (137, True, False)


def test_one_session_can_run_twice(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        for code in (1, 2):
            assert supervisor.run(python(f"raise SystemExit({code})"), dict(os.environ)).code == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_start_is_not_lost(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.signal(number, lambda *_: handed_on.append(number))
    handed_on: list[int] = []
    try:
        with Supervisor(tmp_path) as supervisor:
            os.kill(os.getpid(), number)
            with pytest.raises(AbandonedError, match=f"ended by {number.name}") as caught:
                supervisor.run(python("print('started')"), dict(os.environ))
        assert (caught.value.exit_code, handed_on) == (128 + number, [])
    finally:
        signal.signal(number, before)


def test_a_signal_after_the_end_is_handed_on(tmp_path: Path) -> None:
    handed_on: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: handed_on.append(number))
    try:
        with Supervisor(tmp_path) as supervisor:
            assert supervisor.run(python(""), dict(os.environ)).code == 0
            os.kill(os.getpid(), signal.SIGTERM)
            assert handed_on == []
        assert handed_on == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_the_start_reaches_the_command(
    tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = child.start

    def start(*words: Any, **options: Any) -> int:
        process = real(*words, **options)
        os.kill(os.getpid(), number)
        return process

    monkeypatch.setattr(child, "start", start)
    ended = run("import time; time.sleep(60)", tmp_path)
    assert ended == Ended(128 + number, number, True, 0)


def test_lines_are_looked_at(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    run("import sys; print('a'); sys.stderr.write('b\\nc')", tmp_path, on_line=lines.append)
    assert sorted(lines) == ["a", "b", "c"]
    assert capfd.readouterr() == ("a\n", "b\nc")


def test_handlers_and_children_are_as_before(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    files = len(list(Path("/proc/self/fd").iterdir()))
    run("", tmp_path)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)] == before
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize(("name", "error"), [("gone", CommandNotFoundError), ("text", CommandNotExecutableError)])
def test_what_cannot_be_executed(tmp_path: Path, name: str, error: type[Exception]) -> None:
    (tmp_path / "text").write_bytes(b"\0text")
    (tmp_path / "text").chmod(0o755)
    path = str(tmp_path / name)
    with Supervisor(tmp_path) as supervisor, pytest.raises(error):
        supervisor.run(Executable(path, (path,)), dict(os.environ))


def test_addresses_can_be_fixed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "print(int(open('/proc/self/personality').read(), 16) & 0x40000)"
    run(code, tmp_path, fixed_addresses=True)
    run(code, tmp_path)
    assert capfd.readouterr().out == f"{0x40000}\n0\n"
