"""One run of a command under a capture: what is asked for, what is done meanwhile, and what comes of it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foundry import env
from foundry.errors import (
    AbandonedError,
    CommandFailedError,
    FoundryError,
    NoHookedProcessError,
    NotReadyError,
)
from foundry.findings import DISARMED, Finding
from foundry.launch.supervisor import Ended, Supervisor
from foundry.session import caching, prefetching, product, words
from foundry.session.listener import Listener
from foundry.session.product import Product
from foundry.session.proving import Packed, Proven
from foundry.session.ready import CommitWatch, LogWatch, UrlWatch, Watch
from foundry.session.status import Status
from foundry.session.workspace import Workspace

if TYPE_CHECKING:
    from foundry.caches.collect import Collector
    from foundry.model import Capture as Model
    from foundry.model import Range
    from foundry.session.scrubbing import Scrubbed

TICK_SECONDS = 0.1
FIRST_USE_SECONDS = 5.0
"""How long after a sign of readiness to wait for a process that uses CUDA."""
STOP_SECONDS = 30.0
"""How long a command may take to end after it was asked to, before it is killed."""


@dataclass(frozen=True)
class Request:
    """What the user asked for. `output` None means the store. `update`: an archive to add to.

    What `scrub` needs, `prove` and `witness`, it brings.
    """

    command: Sequence[str]
    output: Path | None = None
    force: bool = False
    ready_url: str | None = None
    ready_log: str | None = None
    ready_timeout: float | None = None
    stop_when_ready: bool = False
    simulated: bool = False
    all_kernels: bool = False
    thin: bool = False
    witness: bool = False
    prove: bool = False
    scrub: bool = False
    contents: bool = True
    caches: bool = True
    prefetch: bool = False
    update: Path | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Outcome:
    """How it went. The exit status is the command's unless Foundry failed; `problem` says what there is to tell."""

    exit_code: int
    ended: Ended
    product: Product | None
    seconds: float
    problem: FoundryError | None
    proven: Proven | None = None
    scrubbed: Scrubbed | None = None

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        result: dict[str, object] = {
            "exit_code": self.exit_code,
            "command_exit_code": self.ended.code,
            "seconds": round(self.seconds, 3),
            "error": str(self.problem) if self.problem else None,
        }
        result.update(self.product.as_dict() if self.product else {"archive": None})
        if self.proven:
            result["proof"] = self.proven.as_dict()
        if self.scrubbed:
            result["scrub"] = self.scrubbed.as_dict()
        return result


class CaptureRun:
    """The state of one capture while its command runs and afterwards."""

    context: dict[str, str]
    lean: Callable[[Model], Model]
    doing = "writing the archive"
    earlier: Model | None = None
    """What an archive holds that this run is added to."""

    def __init__(self, request: Request, workspace: Workspace, target: Path, replace: bool, listener: Listener) -> None:
        self._request = request
        self._workspace = workspace
        self._target = target
        self._replace = replace
        self._listener = listener
        self._existed = target.exists()
        self._status = Status(workspace.status)
        self.packed: Packed | None = None
        self._caches: Collector | None = None
        self._cached: set[tuple[str, str]] = set()
        self._start_files: prefetching.Recording | None = None
        self._product: Product | None = None
        self._told: Product | None = None
        self._problem: FoundryError | None = None
        self._job: threading.Thread | None = None
        self._started = time.monotonic()
        self._stopped_at = 0.0
        self._ready_at = 0.0
        self._timed_out = False
        self._url_watch = UrlWatch(request.ready_url) if request.ready_url else None
        self.log_watch = LogWatch(request.ready_log) if request.ready_log else None
        named: list[Watch] = [watch for watch in (self._url_watch, self.log_watch) if watch]
        self._watches = named or [CommitWatch(self._status)]

    @contextmanager
    def watching_caches(self, environment: Mapping[str, str]) -> Iterator[None]:
        """Keep what the command that is run meanwhile needs of its JIT caches."""
        if self._request.caches:
            self._caches = caching.begin(environment, self._listener)
        try:
            yield
        finally:
            if self._caches:
                self._caches.close()

    def recording_files(self, environment: Mapping[str, str]) -> Path | None:
        """Record which files the command that is run next reads; give where its processes tell, None if nobody asks."""
        if not self._request.prefetch:
            return None
        self._start_files = prefetching.Recording(self._workspace.folder, environment)
        return self._start_files.log

    def tick(self, supervisor: Supervisor) -> float | None:
        """Look for readiness, then write the archive beside the running command, then wait for its end."""
        if self._caches:
            self._caches.listen()
        if self._stopped_at:
            if time.monotonic() - self._stopped_at > STOP_SECONDS:
                supervisor.stop(signal.SIGKILL)
                return None
            return TICK_SECONDS
        if self._job:
            if self._job.is_alive():
                return TICK_SECONDS
            self._job.join()
            self._tell_written()
            if self._problem:
                self._listener.warn(f"{self._problem}; once more when the command ends")
            return self._stop(supervisor) if self._request.stop_when_ready else None
        if self._start_files:
            self._start_files.look(supervisor.processes)
        if self._url_watch and not self._url_watch.started:
            self._url_watch.start()
        seen = next((what for watch in self._watches if (what := watch.seen())), "")
        if seen and self._may_write():
            self._listener.note(f"ready ({seen}), {self.doing}")
            self._job = threading.Thread(target=self._write_while_it_runs, name="foundry-pack")
            self._job.start()
            return TICK_SECONDS
        limit = self._request.ready_timeout
        if limit is not None and not self._timed_out and time.monotonic() - self._started > limit:
            self._timed_out = True
            if self._request.stop_when_ready:
                return self._stop(supervisor)
            self._listener.warn(f"not ready after {limit:g} s; the archive is written when the command ends")
        return TICK_SECONDS

    def _may_write(self) -> bool:
        """Tell whether a process has used CUDA; one that is about to is given a moment, a server without any is not."""
        self._ready_at = self._ready_at or time.monotonic()
        late = time.monotonic() - self._ready_at > FIRST_USE_SECONDS
        return late or product.processes_seen(self._workspace.spool) > 0

    def _stop(self, supervisor: Supervisor) -> float:
        self._stopped_at = time.monotonic()
        supervisor.stop()
        return TICK_SECONDS

    def _write_while_it_runs(self) -> None:
        try:
            self._write()
        except FoundryError as error:
            self._problem = error
        except Exception as error:
            self._problem = _unexpected(error)

    def _write(self) -> None:
        """Pack what is there, and write it unless the archive already says the same or more."""
        self._status.read()
        ranges: dict[str, tuple[Range, ...]] = {}
        capture, findings = product.pack(
            self._workspace.spool,
            self.context,
            all_kernels=self._request.all_kernels,
            disarmed=self._status.disarmed,
            ranges=ranges,
        )
        before = self._product
        graphs = sum(len(process.graphs) for process in capture.processes)
        if before and self._adds_nothing(before, graphs, findings):
            return
        if self._request.thin:
            capture = self.lean(capture)
            if not capture.outside:
                self._listener.warn("nothing is left out: no kernel image was found again in a library file here")
        if self._caches:
            capture, findings = caching.with_files(capture, findings, self._caches, self.earlier)
            self._cached = {(file.cache, file.path) for file in capture.files}
        if self._start_files:
            capture = self._start_files.added(capture, self._listener)
        self._product = self._put(capture, findings, again=before is not None)
        if self._request.prove:
            self.packed = Packed(capture, findings, ranges)

    def _adds_nothing(self, before: Product, graphs: int, findings: Sequence[Finding]) -> bool:
        if graphs > before.graphs or _gave_up(findings) - _gave_up(before.findings):
            return False
        # A server that is ready may still compile kernels for its first requests.
        return graphs < before.graphs or not caching.has_more(self._caches, self._cached)

    def _put(self, capture: Model, findings: list[Finding], *, again: bool) -> Product | None:
        return product.write(capture, findings, self._target, force=self._replace or again)

    def finish(self, ended: Ended, seconds: float) -> Outcome:
        """Write what is not written yet, after the command's end, and say how it went."""
        for watch in self._watches:
            watch.close()
        with _DeferredSignals(self._listener):
            if self._job:
                self._job.join()
            self._problem = None
            if ended.failed and self._existed and not self._product and not self._request.force:
                self._target = self._target.with_name(f"{self._target.stem}.incomplete{self._target.suffix}")
                self._replace = True
            try:
                with self._listener.step(self.doing):
                    self._write()
            except FoundryError as error:
                self._problem = error
            except Exception as error:
                self._problem = _unexpected(error)
        self._tell_written()
        if ended.left_over:
            self._listener.note(
                f"ended {words.count(ended.left_over, 'process', 'processes')} that the command left behind"
            )
        return self._outcome(ended, seconds)

    def _tell_written(self) -> None:
        if self._product and self._product is not self._told:
            self._told = self._product
            self._listener.note(f"wrote {self._product.line()}")
            if self._product.left_out_note:
                self._listener.note(f"  {self._product.left_out_note}")
            for line in product.worst_findings(self._product.findings):
                self._listener.note(f"  {line}")

    def tell(self, written: Product, line: str) -> None:
        """Say that the archive was written anew, and what another run showed."""
        self._product = written
        self._tell_written()
        self._listener.note(f"  {line}")

    def _outcome(self, ended: Ended, seconds: float) -> Outcome:
        problem = self._problem
        stopped_by_us = bool(self._stopped_at) and self._request.stop_when_ready
        code = 0 if stopped_by_us and self._product else ended.code
        if self._timed_out and self._request.stop_when_ready:
            problem = problem or NotReadyError(
                f"not ready after {self._request.ready_timeout:g} s",
                hint="give it longer with `--ready-timeout`, or correct `--ready`",
            )
            code = problem.exit_code
        if problem and (code == 0 or stopped_by_us):
            code = problem.exit_code
        if problem is None and ended.failed and not stopped_by_us:
            kept = f"what it captured is kept in `{self._product.path}`" if self._product else "nothing was captured"
            problem = CommandFailedError(f"the command ended with {how(ended)}; {kept}", exit_code=code)
        if isinstance(problem, NoHookedProcessError) and ended.failed:
            problem = CommandFailedError(f"the command ended with {how(ended)}; {problem}", exit_code=code)
        return Outcome(code, ended, self._product, seconds, problem)


def _gave_up(findings: Sequence[Finding]) -> set[str]:
    """Name the processes that stopped recording."""
    return {finding.where for finding in findings if finding.code == DISARMED}


def _unexpected(error: Exception) -> FoundryError:
    """Make an error of a fault of ours: the command is not to blame, and its status is still passed on."""
    if os.environ.get(env.TRACEBACK):
        raise error
    return FoundryError(
        f"cannot write the archive: {type(error).__name__}: {error}",
        hint="this is a fault of foundry; `FOUNDRY_TRACEBACK=1` shows where, please report it",
    )


def how(ended: Ended) -> str:
    """Say how a command ended."""
    if ended.signal_number:
        return f"signal {ended.signal_number} ({signal.Signals(ended.signal_number).name})"
    return f"exit code {ended.code}"


class _DeferredSignals:
    """While the archive is written after the end, the first signal to end is only answered, the second obeyed."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._first = 0
        self._previous: dict[int, object] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _on_signal(self, number: int, _: object) -> None:
        if self._first:
            raise AbandonedError("given up while writing the archive", signal_number=number)
        self._first = number
        self._listener.note("writing the archive; once more gives it up")
