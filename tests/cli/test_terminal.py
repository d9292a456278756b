"""Under a terminal the command has it: keys reach it, it may read, and what it prints looks as ever."""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import sys
import time
from collections.abc import Iterator

import pytest
from helpers.commandline import CommandLine, program


class Session:
    """A process that leads a session on a pseudo terminal of its own."""

    def __init__(self, words: list[str], environment: dict[str, str], folder: str) -> None:
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execve(words[0], words, environment)
        self.seen = ""

    def until(self, wanted: str, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while wanted not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"{wanted!r} did not come, only {self.seen!r}"
            if select.select([self.terminal], [], [], left)[0]:
                self.seen += os.read(self.terminal, 4096).decode()

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self.terminal, text.encode())

    def end(self) -> int:
        try:
            while True:
                self.seen += os.read(self.terminal, 4096).decode()
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


@pytest.fixture
def sessions() -> Iterator[list[Session]]:
    made: list[Session] = []
    yield made
    for session in made:
        os.close(session.terminal)


def start(sessions: list[Session], command: CommandLine, words: list[str]) -> Session:
    session = Session(words, command.environment, str(command.work))
    sessions.append(session)
    return session


def test_ctrl_c_reaches_the_command_and_the_archive_is_written(
    foundry_command: CommandLine, sessions: list[Session]
) -> None:
    target = foundry_command.work / "a.fdry"
    words = foundry_command.words("capture", "-o", target, "--", *program("--serve"))
    session = start(sessions, foundry_command, words)
    session.until("serving")
    session.type("\x03")
    session.until("got SIGINT")
    assert session.end() == 0
    assert session.seen.count("got SIGINT") == 1
    assert target.exists()


def test_two_ctrl_c_reach_a_command_that_does_not_heed_them(
    foundry_command: CommandLine, sessions: list[Session]
) -> None:
    words = foundry_command.words("capture", "--", *program("--serve", "--deaf"))
    session = start(sessions, foundry_command, words)
    session.until("serving")
    for _ in range(2):
        session.type("\x03")
        session.until("got SIGINT")
    session.type("\x1c")
    assert session.end() == 128 + signal.SIGQUIT


@pytest.mark.parametrize("verb", [["capture"], ["restore"], ["restore", "--json"], ["capture", "--ready-log", "x"]])
def test_the_command_reads_from_and_prints_to_the_terminal(
    foundry_command: CommandLine, sessions: list[Session], verb: list[str]
) -> None:
    code = "import os; print(*map(os.isatty, range(3)), os.get_terminal_size()[1]); print('got', input('name? '))"
    session = start(sessions, foundry_command, foundry_command.words(*verb, "--", sys.executable, "-c", code))
    session.until("name? ")
    assert "True True True" in session.seen
    session.type("me\n")
    session.until("got me\r\n")
    session.end()
    assert "\r\r" not in session.seen


def test_ctrl_z_stops_both_and_fg_goes_on(foundry_command: CommandLine, sessions: list[Session]) -> None:
    environment = {**foundry_command.environment, "PS1": "$ ", "HISTFILE": "/dev/null"}
    session = Session(["/bin/bash", "--norc", "--noprofile", "-i"], environment, str(foundry_command.work))
    sessions.append(session)
    session.until("$ ")
    words = shlex.join(foundry_command.words("capture", "-o", "z.fdry", "--", *program("--serve")))
    session.type(words + "\n")
    session.until("\nserving")
    session.type("\x1a")
    session.until("Stopped")
    session.type("fg\n")
    session.until("capture")
    time.sleep(0.3)
    session.type("\x03")
    session.until("got SIGINT")
    session.until("wrote ")
    session.until("$ ")
    session.type("exit $?\n")
    assert session.end() == 0


def test_a_background_job_does_not_take_the_terminal(foundry_command: CommandLine, sessions: list[Session]) -> None:
    environment = {**foundry_command.environment, "PS1": "$ ", "HISTFILE": "/dev/null"}
    session = Session(["/bin/bash", "--norc", "--noprofile", "-i"], environment, str(foundry_command.work))
    sessions.append(session)
    session.until("$ ")
    words = shlex.join(foundry_command.words("capture", "-o", "b.fdry", "--", *program("--serve")))
    session.type(words + " &\n")
    session.until("serving\r\n")
    session.type("echo still $((40 + 2))\n")
    session.until("still 42")
    session.type("kill %1; wait %1; exit $?\n")
    assert session.end() == 0


def test_the_size_of_the_window_is_passed_on(foundry_command: CommandLine, sessions: list[Session]) -> None:
    import fcntl
    import struct
    import termios

    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print('now', os.get_terminal_size(1).columns, flush=True))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.02)"
    )
    words = foundry_command.words("capture", "--ready-log", "never", "--", sys.executable, "-c", code)
    session = start(sessions, foundry_command, words)
    session.until("ready")
    fcntl.ioctl(session.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 123, 0, 0))
    session.until("now 123")
    session.type("\x03")
    session.end()
