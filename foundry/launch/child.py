"""Starts a command as a child in a process group of its own."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from foundry.launch import linux
from foundry.launch.executable import Executable, could_not_start
from foundry.launch.terminal import Terminal

PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""What the supervisor passes on to the command."""
RESTORED_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU)
"""Ignored by Python or by this package; a command gets the default back."""
_FAILURE = struct.Struct("<i")


@dataclass(frozen=True)
class Output:
    """Where the child's standard output and error go; None keeps the one that this process has."""

    stdout: int | None = None
    stderr: int | None = None


def start(
    executable: Executable,
    environment: Mapping[str, str],
    *,
    terminal: Terminal,
    output: Output | None = None,
    fixed_addresses: bool = False,
) -> int:
    """Start a command and return its process id, which is also its group. Call it while this process has one thread.

    The kernel ends the command with SIGTERM should this process be killed.
    """
    parent = os.getpid()
    failure_read, failure_write = os.pipe()
    # A signal that comes before the child has its own dispositions waits until it has them.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        process = os.fork()
        if process == 0:
            _become(executable, environment, parent, failure_write, terminal, output or Output(), fixed_addresses, mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.close(failure_write)
    with contextlib.suppress(OSError):  # the child has done it, or has already executed
        os.setpgid(process, process)
    failure = os.read(failure_read, _FAILURE.size)
    os.close(failure_read)
    if failure:
        os.waitpid(process, 0)
        raise could_not_start(executable, _FAILURE.unpack(failure)[0])
    return process


def restore_signals() -> None:
    """Give the signals back that a command expects at their default."""
    for number in RESTORED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _become(
    executable: Executable,
    environment: Mapping[str, str],
    parent: int,
    failure: int,
    terminal: Terminal,
    output: Output,
    fixed_addresses: bool,
    mask: set[signal.Signals] | set[int],
) -> NoReturn:
    """Run the child's side of the fork; never returns into the caller's code."""
    try:
        linux.die_with_parent(signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)
        os.setpgid(0, 0)
        terminal.give_to(os.getpid())
        for wanted, standard in ((output.stdout, 1), (output.stderr, 2)):
            if wanted is not None:
                os.dup2(wanted, standard)
        if fixed_addresses:
            with contextlib.suppress(OSError):
                linux.keep_addresses_fixed()
        for number in PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        restore_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execve(executable.path, executable.arguments, environment)
    except OSError as error:
        os.write(failure, _FAILURE.pack(error.errno or errno.EIO))
    except BaseException:
        os.write(failure, _FAILURE.pack(errno.EIO))
    finally:
        os._exit(127)
