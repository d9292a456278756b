"""What a compiler's caches ask for before they give anything is computed while a program does something else."""

from __future__ import annotations

import functools
import sys
import threading
import time
from types import ModuleType

import pytest

from foundry.engines import digests


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("a_compiler")
    monkeypatch.setitem(sys.modules, "a_compiler", module)
    return module


def _end() -> None:
    for thread in threading.enumerate():
        if thread.name == "foundry-digests":
            thread.join(10)


def test_all_are_computed_in_a_thread_with_short_turns(compiler: ModuleType) -> None:
    seen: list[tuple[str, float]] = []
    compiler.first = compiler.second = lambda: seen.append(  # type: ignore[attr-defined]
        (threading.current_thread().name, sys.getswitchinterval())
    )
    before = sys.getswitchinterval()
    digests.ahead(("a_compiler", "first"), ("a_compiler", "second"))
    _end()
    assert [name for name, _ in seen] == ["foundry-digests"] * 2
    assert all(interval == pytest.approx(digests.SWITCH_INTERVAL) for _, interval in seen)
    assert sys.getswitchinterval() == before


def test_what_is_not_there_or_fails_is_left_to_who_needs_it(
    compiler: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def fail() -> None:
        raise OSError("no such file")

    compiler.fail, compiler.last = fail, lambda: seen.append("last")  # type: ignore[attr-defined]
    before = sys.getswitchinterval()
    digests.ahead(("no_such_compiler", "key"), ("a_compiler", "gone"), ("a_compiler", "fail"), ("a_compiler", "last"))
    _end()
    assert seen == ["last"]
    assert sys.getswitchinterval() == before
    assert capfd.readouterr() == ("", "")


def test_what_is_under_way_is_waited_for_before_it_is_asked_for(compiler: ModuleType) -> None:
    computed: list[str] = []

    @functools.lru_cache
    def key() -> str:
        time.sleep(0.2)
        computed.append(threading.current_thread().name)
        return "key"

    compiler.key = key  # type: ignore[attr-defined]
    digests.ahead(("a_compiler", "key"))
    digests.wait()
    assert key() == "key"
    assert computed == ["foundry-digests"]
    digests.wait()


def test_the_caller_does_not_wait(compiler: ModuleType) -> None:
    go_on = threading.Event()
    compiler.key = lambda: go_on.wait(10)  # type: ignore[attr-defined]
    begin = time.monotonic()
    digests.ahead(("a_compiler", "key"))
    assert time.monotonic() - begin < 5
    go_on.set()
    _end()
