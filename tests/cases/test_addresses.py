"""Places that are taken, memory that runs out, frees of what nobody allocated (C34-C41), and calls of odd kinds."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cases.driver_shell import make_shell
from helpers.native_build import hooked_environment, link_simulator
from helpers.roundtrip import Program, Run
from native.hook_run import Bench, events, outcome

PAGE, MEBIBYTE = 4096, 1 << 20
MODES = (None, "capture")
OTHERS = ("pools", "update", "fill-up")


@pytest.mark.parametrize("what", ["without-context", "global", "thread-local", "relaxed", "broken", *OTHERS])
def test_the_driver_answers_as_without_the_hook(bench: Bench, tmp_path: Path, what: str) -> None:
    """C06, C19, C18, C22, C32, C37, C41: in this order."""
    binary = bench.program("strange", *link_simulator())
    memory = {"FOUNDRY_SIM_MEMORY": str(256 * MEBIBYTE)}
    plain, hooked = (bench.run(binary, tmp_path / str(mode), what, mode=mode, **memory) for mode in MODES)
    assert plain.code == hooked.code == 0, (plain.errors, hooked.errors)
    assert hooked.lines == plain.lines
    if what == "broken":  # each that was instantiated is in the spool, and none that broke
        assert len(events(hooked.spool(), "Graph")) == sum(line == "instantiate 0" for line in plain.lines) > 6


def occupied(bench: Bench, *places: int) -> Program:
    binary = bench.program("occupied", *link_simulator())
    return Program([str(binary), "3", *map(hex, places)])


@pytest.fixture(scope="module")
def plain_capture(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return occupied(bench).captured(tmp_path_factory.mktemp("plain") / "captured", 7)


PLACES = ["begin", "inside", "last page", "anywhere", "anywhere else"]


def place_of(run: Run, name: str) -> int:
    (device,) = events(run.spool(), "Device")
    assert device.base
    whole = 3 * device.arena_size
    drawn = random.Random(name).randrange(whole // PAGE) * PAGE
    places = {"begin": 0, "inside": 64 << 30, "last page": whole - PAGE}
    return int(device.base) + places.get(name, drawn)


@pytest.mark.parametrize("name", PLACES)
def test_a_capture_goes_elsewhere_where_any_page_is_taken(
    bench: Bench, tmp_path: Path, plain_capture: Run, name: str
) -> None:
    """C34: and leaves the page as it is."""
    made = occupied(bench, place_of(plain_capture, name))
    captured = made.captured(tmp_path / "captured", 7)
    assert captured.output == "worker captured 3\n"
    (device,) = events(captured.spool(), "Device")
    assert device.base not in (0, place_of(plain_capture, "begin"))
    restored = made.restored(tmp_path / "restored", 11, captured.capture)
    assert restored.output == "worker restored 3\n"


@pytest.mark.parametrize("name", PLACES)
def test_a_restore_is_given_up_where_any_page_is_taken(
    bench: Bench, tmp_path: Path, plain_capture: Run, name: str
) -> None:
    """C34: with the reason, and nothing is used."""
    restored = occupied(bench, place_of(plain_capture, name)).restored(tmp_path / "restored", 11, plain_capture.capture)
    assert restored.output == "worker captured 3\n"
    status = (restored.session / "status").read_text()
    assert f"disarmed range taken: device 0 wants {place_of(plain_capture, 'begin'):#x}" in status
    assert status.rstrip().endswith("; anonymous memory stands there")
    assert "/" not in status.partition("; ")[2]


def test_a_file_that_stands_there_is_named_without_its_path(bench: Bench, tmp_path: Path, plain_capture: Run) -> None:
    """C34."""
    named = tmp_path / "lib with blanks.so"
    named.write_bytes(bytes(PAGE))
    restored = occupied(bench, place_of(plain_capture, "inside")).restored(
        tmp_path / "restored", 11, plain_capture.capture, OCCUPIED_WITH=str(named)
    )
    assert restored.output == "worker captured 3\n"
    status = (restored.session / "status").read_text()
    assert status.rstrip().endswith("; `lib with blanks.so` stands there")
    assert str(tmp_path) not in status


def test_a_page_behind_the_range_disturbs_nothing(bench: Bench, tmp_path: Path, plain_capture: Run) -> None:
    """C34."""
    behind = place_of(plain_capture, "last page") + PAGE
    restored = occupied(bench, behind).restored(tmp_path / "restored", 11, plain_capture.capture)
    assert restored.output == "worker restored 3\n"


NO_VIRTUAL_MEMORY = {
    "cuDeviceGetAttribute": """
extern void *real_cuDeviceGetAttribute;
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (!real_cuInit) shell_open();
    int result = ((int (*)(int *, int, int))real_cuDeviceGetAttribute)(value, attribute, device);
    if (!result && attribute == 102) *value = 0;
    return result;
}
"""
}


def test_a_device_without_virtual_memory_is_left_to_the_driver(bench: Bench, tmp_path: Path) -> None:
    """C36: said by name; the program runs as ever, and its graphs are not claimed."""
    make_shell(tmp_path / "driver", overrides=NO_VIRTUAL_MEMORY)
    session = tmp_path / "session"
    session.mkdir()
    environment = hooked_environment("capture", session) | {"LD_LIBRARY_PATH": str(tmp_path / "driver")}
    binary = bench.program("worker", *link_simulator())
    done = subprocess.run([binary, "3"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "worker captured 3\n"), done.stderr
    spool = outcome(session, 0, "", "").spool()
    (device,) = events(spool, "Device")
    assert (device.base, device.arena_size) == (0, 0)
    told = {finding.code for finding in events(spool, "Told")}
    assert told & {"range-missing", "no-virtual-memory", "range-taken"}, told


def test_free_memory_is_what_a_program_would_see(bench: Bench, tmp_path: Path) -> None:
    """C40: reserving addresses takes none, and packing small memory takes no more than the driver does."""
    binary = bench.program("footprint", *link_simulator())
    plain, hooked = (bench.run(binary, tmp_path / str(mode), mode=mode) for mode in MODES)
    for one, other in zip(plain.lines, hooked.lines, strict=True):
        when, free, total = one.split()
        also, as_hooked, as_total = other.split()
        assert (when, total) == (also, as_total)
        assert int(as_hooked) >= int(free) - (0 if when == "start" else 2 * MEBIBYTE)


SIZES = [2, 4, 6, 8, 10, 12, 16, 24]


@pytest.fixture(scope="module")
def large_program(bench: Bench) -> Program:
    binary = bench.program("nodes", *link_simulator())
    keys = ("parameters", "memset-1", "shared-99", "child-3", "memory")
    return Program([str(binary), str(bench.folder / "special.image"), *keys])


@pytest.mark.parametrize("size", SIZES)
def test_a_restore_needs_no_more_memory_than_the_capture(
    bench: Bench, tmp_path: Path, large_program: Program, size: int
) -> None:
    """C41, C68: where memory is short, the restored program ends as the program would have ended."""
    whole = large_program.captured(tmp_path / "whole", 7)
    limits = {"FOUNDRY_SIM_MEMORY": str(size * MEBIBYTE)}
    binary, *words = large_program.command
    plain = bench.run(Path(binary), tmp_path / "plain", *words, mode="capture", **limits)
    limited = replace(large_program, environment=tuple(limits.items()))
    if plain.code:
        with pytest.raises(AssertionError) as failed:
            limited.restored(tmp_path / "restored", 11, whole.capture)
        assert str(plain.code) in str(failed.value)
        return
    restored = limited.restored(tmp_path / "restored", 11, whole.capture)
    assert [line for line in restored.output.splitlines() if " restored " in line]
    values = [line.split()[2] for line in restored.output.splitlines() if not line.startswith("refused")]
    assert values == [line.split()[2] for line in plain.lines]
