from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from foundry.launch import descendants

SLEEP = "import time; time.sleep(60)"


def start(code: str = SLEEP, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], **options)  # type: ignore[call-overload]


def test_descendants_without_the_excluded() -> None:
    parent = start(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])")
    other = start()
    try:
        while len(below := descendants.below(parent.pid)) != 1:
            time.sleep(0.01)
        (grandchild,) = below
        mine = descendants.below(os.getpid())
        assert {parent.pid, other.pid, grandchild} <= mine
        assert descendants.below(os.getpid(), excluding=frozenset({parent.pid})) & {parent.pid, grandchild} == set()
    finally:
        for process in (grandchild, parent.pid, other.pid):
            os.kill(process, signal.SIGKILL)
        parent.wait()
        other.wait()


def test_the_dead_do_not_count() -> None:
    process = start("")
    time.sleep(0.5)
    assert process.pid not in descendants.below(os.getpid())
    process.wait()


def test_a_session_is_known_by_group_and_environment() -> None:
    marked = start(env={"FOUNDRY_SPOOL": "/a b/spool"})
    grouped = start(preexec_fn=os.setpgrp)
    try:
        time.sleep(0.2)
        found = descendants.of_session("FOUNDRY_SPOOL=/a b/spool", grouped.pid)
        assert {marked.pid, grouped.pid} <= found
        assert os.getpid() not in found
        assert descendants.of_session("FOUNDRY_SPOOL=/a b/spoo", 1 << 30) == set()
    finally:
        for process in (marked, grouped):
            process.kill()
            process.wait()


def test_ending_goes_from_waiting_to_killing() -> None:
    deaf = start("import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)", stdout=-1)
    assert deaf.stdout
    deaf.stdout.readline()
    started = time.monotonic()
    told = descendants.end(lambda: set() if deaf.poll() is not None else {deaf.pid}, quiet=0.1, grace=0.2)
    assert told == 1
    assert deaf.wait() == -signal.SIGKILL
    assert time.monotonic() - started >= 0.3
    assert descendants.end(lambda: set()) == 0
