"""Other machines, engines and arguments; names that escape and words that are secret: whole kinds of each (C57-C61)."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from unit.compat.test_host import GPU, MACHINE, Archive, Head, here, process

from foundry.compat import codes, compare, host, packages
from foundry.compat.items import Item, Level
from foundry.model import Capture, File, Process
from foundry.model.checks import UnsoundError, check_capture
from foundry.store import secrets

__all__ = ["process"]
quick = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

OTHERS = {
    codes.GPU_MODEL: ("name", st.sampled_from(["NVIDIA H100", "NVIDIA H200 NVL", "NVIDIA B200", "nvidia h200", ""])),
    codes.COMPUTE: ("compute_major", st.integers(1, 20).filter(lambda major: major != 9)),
    codes.MULTIPROCESSORS: ("multiprocessors", st.integers(1, 300).filter(lambda number: number != 132)),
    codes.MIG: ("mig", st.just(True)),
    codes.VIRTUAL_MEMORY: ("virtual_memory", st.just(False)),
    codes.COMPUTE_MODE: ("compute_mode", st.just(2)),
}
"""What of a GPU may be otherwise, each with the values that it may have."""


@quick
@given(data=st.data())
def test_whatever_is_otherwise_is_refused_by_its_own_code_with_both_values(
    process: Process, data: st.DataObject
) -> None:
    """C57: any of it and any of it together, allowed or not."""
    device = replace(process.devices[0], flags=1)
    other = data.draw(st.sets(st.sampled_from(sorted(OTHERS))))
    values = {name: data.draw(value) for code in sorted(other) for name, value in [OTHERS[code]]}
    version = data.draw(st.sampled_from([11080, 12040, 12080, 13000, 13020]))
    machine = replace(MACHINE, version=version, devices=(replace(GPU, **values),))
    allowed = data.draw(st.sets(st.sampled_from(sorted(code for code in codes.RULES if codes.allowable(code)))))
    captured = replace(process, devices=(replace(device, name=GPU.name),))
    items = host.examine(Archive([captured]), here(machine, allowed=allowed))
    wanted = other | ({codes.DRIVER} if version < captured.driver_version else set())
    assert {item.code for item in items if item.level is Level.REFUSE} == wanted - allowed
    assert {item.code for item in items if item.level is Level.ALLOWED} == wanted & allowed
    for item in items:
        if item.code in wanted:
            assert item.archive != item.here
            assert f"{item.code}: {item.where}: {item.what}: archive {item.archive}, here {item.here}" == str(item)


WORDS = st.text(string.ascii_letters + string.digits + "-_=./", min_size=1, max_size=12)
HARMLESS = st.sampled_from(sorted(compare.HARMLESS_OPTIONS))


def compared(captured: list[str], now: list[str]) -> Level:
    (item,) = compare.command({compare.ARGUMENTS: json.dumps(captured)}, now, {})
    assert item.code == codes.ARGUMENTS
    return item.level


def is_plain(words: list[str]) -> bool:
    """Whether none of them is one of the options that do not matter."""
    return not any(word.partition("=")[0] in compare.HARMLESS_OPTIONS for word in words)


@quick
@given(st.lists(WORDS, max_size=6), st.data())
def test_any_other_word_is_another_command(words: list[str], data: st.DataObject) -> None:
    """C58: one more, one less, another one, or two the other way round."""
    assume(is_plain(words))
    captured = ["serve", *words]
    at = data.draw(st.integers(1, len(captured)))
    new = data.draw(WORDS)
    assume(is_plain([new]))
    changed = [*captured[:at], new, *captured[at + data.draw(st.integers(0, 2)) :]]
    assert compared(captured, captured) is Level.SAME
    assert compared(captured, changed) is (Level.SAME if changed == captured else Level.REFUSE)
    swapped = [captured[0], *reversed(captured[1:])]
    assert compared(captured, swapped) is (Level.SAME if swapped == captured else Level.REFUSE)


@quick
@given(st.lists(WORDS, max_size=6), st.lists(st.tuples(HARMLESS, WORDS, st.booleans()), min_size=1), st.data())
def test_where_and_as_whom_it_serves_is_a_note(
    words: list[str], options: list[tuple[str, str, bool]], data: st.DataObject
) -> None:
    """C58: any of these options, in both spellings, at any place, with any values."""
    assume(is_plain(words))
    now = ["serve", *words]
    for name, value, joined in options:
        at = data.draw(st.integers(1, len(now)))
        assume(now[at - 1] not in compare.HARMLESS_OPTIONS)
        now[at:at] = [f"{name}={value}"] if joined else [name, value]
        assume(value not in compare.HARMLESS_OPTIONS)
    assert compared(["serve", *words], now) is Level.NOTE


@quick
@given(st.sampled_from(packages.LAYING_OUT), st.sampled_from(["", "-cu12", "-cu13"]), WORDS, WORDS)
def test_another_version_of_an_engine_is_refused(name: str, suffix: str, before: str, now: str) -> None:
    """C58: of any that lays out memory, whatever the versions look like."""
    assume(before != now)
    name += suffix if name == "nvidia-nccl" else ""
    (item,) = compare.packages({name: before}, {name: now, "other": "1"})
    assert (item.code, item.level, item.archive, item.here) == (codes.ENGINE, Level.REFUSE, before, now)
    (item,) = compare.packages({name: before}, {"other": "1"})
    assert item.level is Level.REFUSE


LACKING: list[tuple[Head, str]] = [
    (Head(), codes.ARGUMENTS),
    (Head({compare.ARGUMENTS: "not JSON"}), codes.ARGUMENTS),
    (Head({compare.ARGUMENTS: "[]"}), codes.ARGUMENTS),
]


@pytest.mark.parametrize(("head", "code"), LACKING)
def test_what_an_archive_does_not_tell_is_not_known(process: Process, head: Head, code: str) -> None:
    """C58: it is neither the same nor refused, and `verify --host` says so."""
    items = host.examine(Archive([process], head), here(arguments=["serve"]))
    (item,) = [item for item in items if item.code == code]
    assert (item.level, item.archive, item.here) == (Level.UNKNOWN, "not recorded", "serve")


PARTS = st.sampled_from(["..", ".", "", "a", "b.so", "a\\b", "a\0", "\n", "ä", "/"])


@quick
@given(st.lists(PARTS, min_size=1, max_size=5), st.sampled_from(["triton", "..", ".", "", "a/b", "/"]))
def test_no_file_of_an_archive_lies_outside_its_folder(parts: list[str], cache: str) -> None:
    """C60: whatever its name is made of."""
    name = "/".join(parts)
    with suppress(UnsoundError):
        check_capture(Capture((), (b"",), files=(File(cache, name, 0o600, 0),)))
        root = PurePosixPath("/caches")
        landed = Path("/caches", cache, name).resolve()
        assert str(landed) == str(root / cache / name)
        assert landed.is_relative_to(root / cache) and landed != Path(root / cache)
        assert "\0" not in name and "\\" not in name


SECRET_NAMES = ["--api-key", "--hf-token", "--HF_TOKEN", "--auth.password", "HF_TOKEN", "OPENAI_API_KEY", "--secret"]
VALUES = st.text(string.ascii_letters + string.digits + "+/=_.", min_size=8, max_size=40).filter(
    lambda value: not value.startswith("-")
)


def spelled(name: str, value: str) -> Iterator[tuple[list[str], str]]:
    """The ways in which a command line gives a secret, and what of it must not be kept."""
    yield [f"{name}={value}"], value
    if name.startswith("-"):
        yield [name, value], value
    yield ["-H", f"Authorization: Bearer {value}"], value
    plain = re.sub("[^A-Za-z0-9]", "x", value)
    yield [f"https://somebody:{plain}@example.org/"], plain
    yield [f"hf_{plain}"], plain


@quick
@given(st.sampled_from(SECRET_NAMES), VALUES, st.lists(WORDS, max_size=3))
def test_no_secret_is_kept_however_it_is_given(name: str, value: str, words: list[str]) -> None:
    """C61."""
    for given_as, secret in spelled(name, value):
        assume(not any(secret in word for word in words))
        assert not [word for word in secrets.masked([*words, *given_as, *words]) if secret in word]


def test_each_item_says_what_it_is_compared_with() -> None:
    """C57: a long value is told by the part that differs; machines are told all of it."""
    before, now = "a" * 500 + "b" + "c" * 500, "a" * 500 + "d" + "c" * 500
    item = Item(codes.ARGUMENTS, "command", before, now, Level.REFUSE)
    assert re.search(r"archive \.\.\. a{40}bc+ \.\.\., here \.\.\. a{40}dc+ \.\.\.$", str(item))
    assert len(str(item)) < 600
    assert item.as_dict()["archive"] == before
