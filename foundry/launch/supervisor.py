"""Runs a command from start to end: passes signals and output on, waits for it, and leaves no process of it behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from foundry.errors import AbandonedError
from foundry.launch import child, descendants, linux
from foundry.launch.executable import Executable
from foundry.launch.keeper import Keeper
from foundry.launch.tee import Tee
from foundry.launch.terminal import Terminal

TO_THE_GROUP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT)
TO_THE_COMMAND = (signal.SIGUSR1, signal.SIGUSR2)
TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

WINDOW_SECONDS = 0.25

Tick = Callable[["Supervisor"], "float | None"]
"""Called while the command runs; answers in how many seconds to call again, None for never."""
OnLine = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    """How a command ended. `code` is what a shell would show: its exit code, or 128 + the signal."""

    code: int
    signal_number: int
    asked: bool
    left_over: int

    @property
    def failed(self) -> bool:
        """Whether it failed by itself: a server that ends because it was asked to has not."""
        return self.code != 0 and not self.asked


class Supervisor:
    """Runs commands of one session, one after the other. Use it as a context manager, in the main thread."""

    def __init__(self, folder: Path, worth_keeping: Callable[[], bool] = lambda: False) -> None:
        self._folder = folder
        self._worth_keeping = worth_keeping
        self.fault: Exception | None = None
        """What went wrong in a tick; there were no more of them."""
        self._process = 0
        self._running = False
        self._asked = False
        self._kept = 0
        """A signal to end that came while no command ran."""
        self._tees: list[Tee] = []
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Supervisor:
        self._others = frozenset(descendants.below(os.getpid()))
        self._terminal = Terminal()
        self._keeper = Keeper(self._folder, self._worth_keeping)
        linux.adopt_orphans()
        self._wake_read, self._wake_write = os.pipe()
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)
        self._previous_wake = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (*TO_THE_GROUP, *TO_THE_COMMAND, signal.SIGCHLD):
            # `nohup` and a shell's `&` ignore signals on purpose; so shall we and the command.
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process, signal.SIGTERM)
            self._end_what_is_left()
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._previous_wake)
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._keeper.dismiss()
        self._terminal.close()
        if self._kept:
            os.kill(os.getpid(), self._kept)

    def run(
        self,
        executable: Executable,
        environment: Mapping[str, str],
        *,
        tick: Tick | None = None,
        on_line: OnLine | None = None,
        fixed_addresses: bool = False,
        all_to_stderr: bool = False,
    ) -> Ended:
        """Start the command and wait for its end, and for the end of all that it started.

        Raises AbandonedError if a signal to end came before the start.
        """
        if number := self._taken():
            raise AbandonedError(f"ended by {signal.Signals(number).name}", signal_number=number)
        self._asked = False
        self._tees = [Tee(standard, on_line) for standard in (2 if all_to_stderr else 1, 2)] if on_line else []
        output = child.Output(*(tee.for_child for tee in self._tees))
        if all_to_stderr and not self._tees:
            output = child.Output(stdout=2)
        self._process = child.start(
            executable, environment, terminal=self._terminal, output=output, fixed_addresses=fixed_addresses
        )
        self._running = True
        self._keeper.watch(self._process)
        if number := self._taken():
            self._on_signal(number, None)
        for tee in self._tees:
            tee.started()
        status = self._loop(tick)
        left_over = self._end_what_is_left()
        self._running = False
        self._terminal.take_back(self._process)
        for tee in self._tees:
            tee.pump()
            tee.close()
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        code = 128 + number if number else os.WEXITSTATUS(status)
        # Ctrl-C goes from the terminal to the command, not through here: its status tells.
        asked = self._asked or code - 128 in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        return Ended(code, number, asked, left_over)

    def processes(self) -> set[int]:
        """Find the living processes of the command."""
        return descendants.below(os.getpid(), excluding=self._others | {self._keeper.process})

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ask the command to end: a signal to its group."""
        self._asked = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, number)

    def _loop(self, tick: Tick | None) -> int:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            for tee in self._tees:
                selector.register(tee.source, selectors.EVENT_READ, tee)
            pause: float | None = 0.0 if tick else None
            while True:
                for key, _ in selector.select(self._look_at_window(pause)):
                    if isinstance(key.data, Tee):
                        source = key.data.source
                        if not key.data.pump():
                            selector.unregister(source)
                    else:
                        with contextlib.suppress(BlockingIOError):
                            while os.read(self._wake_read, 512):
                                pass
                status = self._reap()
                if status is not None:
                    return status
                if tick and pause is not None:
                    try:
                        pause = tick(self)
                    except Exception as error:
                        # A fault of ours must not end the command.
                        self.fault, pause = error, None

    def _look_at_window(self, pause: float | None) -> float | None:
        """Pass a new window size on. The terminal tells the command's group of it, not this one, so look for it."""
        if not any(tee.is_terminal for tee in self._tees):
            return pause
        if [tee for tee in self._tees if tee.copy_window_size()]:
            self._on_signal(signal.SIGWINCH, None)
        return WINDOW_SECONDS if pause is None else min(pause, WINDOW_SECONDS)

    def _reap(self) -> int | None:
        """Collect every process that ended; return the command's status if it is among them."""
        result = None
        for process, status in _ended_children():
            if process != self._process:
                continue
            if os.WIFSTOPPED(status):
                self._stop_with(os.WSTOPSIG(status))
            else:
                result = status
        return result

    def _stop_with(self, number: int) -> None:
        """Stop as the command did, if a terminal stopped it: that means the whole job. Then go on together."""
        if not self._terminal.present or number == signal.SIGSTOP:
            return
        self._terminal.take_back(self._process)
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        os.kill(os.getpid(), signal.SIGSTOP)
        signal.signal(signal.SIGTSTP, self._on_signal)
        self._terminal.give_to(self._process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGCONT)

    def _end_what_is_left(self) -> int:
        return descendants.end(self.processes, reap=self._drain)

    def _drain(self) -> None:
        """Go on passing output while waiting: a process that writes to a full pipe would never end."""
        for tee in self._tees:
            tee.pump()
        for _ in _ended_children():
            pass

    def _taken(self) -> int:
        number, self._kept = self._kept, 0
        return number

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGCHLD:
            return
        if not self._running:
            self._kept = number if number in TO_END else self._kept
            return
        self._asked = self._asked or number in TO_END
        with contextlib.suppress(ProcessLookupError):
            if number in TO_THE_COMMAND:
                os.kill(self._process, number)
            else:
                os.killpg(self._process, number)


def _ended_children() -> Iterator[tuple[int, int]]:
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return
        if process == 0:
            return
        yield process, status
