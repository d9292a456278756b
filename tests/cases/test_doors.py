"""Every way in which a program reaches its driver: none is missed in silence or gets another answer (C01-C12)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cases.driver_shell import make_shell
from helpers.commandline import CommandLine
from helpers.native_build import (
    PROGRAMS,
    base_environment,
    compile_program,
    hooked_environment,
    link_simulator,
    run_tool,
    sanitized,
)
from native.hook_run import Bench, Outcome, events, outcome

from foundry import native


def driver_names() -> list[str]:
    """Every name that a program may ask for: exported ones, and those without their versions."""
    driver = native.simulator_directory() / "libcuda.so.1"
    exported = {
        line.split()[0] for line in run_tool("nm", "-D", "--defined-only", "--format=posix", driver).splitlines()
    }
    names = {name.partition("@")[0] for name in exported if name.startswith("cu")}
    plain = set()
    for name in names:
        base = name.removesuffix("_ptsz").removesuffix("_ptds")
        plain.add(base[:-3] if base[-3:-1] == "_v" else base)
    return [*sorted(names | plain), "cuFutureThing", "cuMemAlloc_v9", "cuGetProcAddress_v3", "cudnnCreate"]


def test_every_name_is_answered_as_by_the_driver_itself(bench: Bench, tmp_path: Path) -> None:
    """C01, C02: in every version and with every flag, the function that the driver means, and its own refusals."""
    names = tmp_path / "names"
    names.write_text("\n".join(driver_names()))
    binary = bench.program("entry_points")
    plain, hooked = (bench.run(binary, tmp_path / str(mode), str(names), mode=mode) for mode in (None, "capture"))
    assert len(plain.lines) > 20000
    assert plain.code == hooked.code == 0, hooked.errors
    assert [pair for pair in zip(plain.lines, hooked.lines, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.parametrize("build", ["static", "shared"])
@pytest.mark.parametrize("version", ["11030", "11050", "12000", "12080", "13000"])
def test_every_runtime_is_seen_alike(bench: Bench, tmp_path: Path, build: str, version: str) -> None:
    """C01: whatever its version, and whether it lies in the program or in a library."""
    library = bench.library("runtime", "-DLIBRARY")
    words = [version, str(library)] if build == "shared" else [version]
    done = bench.run(bench.program("runtime"), tmp_path / "session", *words)
    assert (done.code, done.lines) == (0, ["works"]), done.errors
    spool = done.spool()
    assert [len(events(spool, kind)) for kind in ("Allocation", "Free", "Graph", "ExecGone")] == [1, 1, 1, 1]
    assert spool.ended


def test_names_like_the_drivers_belong_to_their_libraries(bench: Bench, tmp_path: Path) -> None:
    """C04: what begins with `cu` is not the driver's, and a handle is honoured."""
    library = bench.library("namesakes")
    binary = bench.program("asks_namesakes", *link_simulator())
    done = bench.run(binary, tmp_path / "session", str(library))
    others = ("cudnnCreate", "cublasCreate_v2", "cufftPlan1d", "cusparseCreate", "cuNumericInit", "cuInit_v9")
    assert done.lines == ["cuInit 71", *(f"{name} 78" for name in others), "again 72", "elsewhere 0"], done.errors
    assert len(events(done.spool(), "Allocation")) == 1


class TestShells:
    """C03, C04: a driver that hands calls on to another one, and exports names that nobody knows."""

    def run(self, bench: Bench, folder: Path, *words: str, own: bool, eager: bool) -> Outcome:
        make_shell(folder / "driver", own_entries=own, eager=eager)
        session = folder / "session"
        session.mkdir()
        environment = hooked_environment("capture", session) | {"LD_LIBRARY_PATH": str(folder / "driver")}
        binary = bench.program("strangers", *link_simulator())
        done = subprocess.run(
            [binary, *words], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return outcome(session, done.returncode, done.stdout, done.stderr)

    @pytest.mark.parametrize("words", [(), ("0",)])
    @pytest.mark.parametrize("eager", [True, False])
    def test_unknown_names_pass_and_the_rest_is_seen(
        self, bench: Bench, tmp_path: Path, eager: bool, words: tuple[str, ...]
    ) -> None:
        done = self.run(bench, tmp_path, *words, own=True, eager=eager)
        assert (done.code, done.lines) == (0, ["dlsym 1001 2002", "entry 1003", "works"]), done.errors
        assert [len(events(done.spool(), kind)) for kind in ("Allocation", "Graph")] == [1, 1]

    @pytest.mark.parametrize("eager", [True, False])
    def test_one_whose_entry_points_are_elsewhere_is_not_half_seen(
        self, bench: Bench, tmp_path: Path, eager: bool
    ) -> None:
        done = self.run(bench, tmp_path, own=False, eager=eager)
        assert (done.code, done.lines) == (0, ["dlsym 1001 2002", "entry 1003", "works"]), done.errors
        assert "disarmed" in done.status
        assert "answers cuGetProcAddress with functions that it does not export" in done.status


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("beside", [True, False])
def test_a_program_with_a_driver_of_its_own_is_seen(bench: Bench, tmp_path: Path, copied: bool, beside: bool) -> None:
    """C10: DT_RPATH leads to a copy of the driver or to a link; the usual one may be in the search path as well."""
    own = tmp_path / "own"
    own.mkdir()
    usual = native.simulator_directory() / "libcuda.so.1"
    if copied:
        shutil.copy(usual, own)
    else:
        (own / usual.name).symlink_to(usual)
    tags = f"-Wl,--disable-new-dtags,-rpath,{own}"
    binary = compile_program(
        tmp_path / "worker", [bench.sources / "worker.c"], f"-I{PROGRAMS / 'hook_programs'}", tags, *link_simulator()
    )
    session = tmp_path / "session"
    session.mkdir()
    environment = hooked_environment("capture", session)
    if not beside:
        del environment["LD_LIBRARY_PATH"]
    done = subprocess.run([binary, "3"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "worker captured 3\n"), done.stderr
    assert len(events(outcome(session, 0, "", "").spool(), "Graph")) == 1


@pytest.mark.skipif(sanitized(), reason="the sanitizer's runtime refuses RTLD_DEEPBIND")
def test_a_library_that_passes_the_hook_is_told_and_its_graphs_are_not_claimed(
    bench: Bench, command: CommandLine
) -> None:
    """C08."""
    library = bench.library("passes_by", *link_simulator())
    binary = bench.program("opens_deep", *link_simulator())
    done = command.run("capture", "--sim", "-o", "a.fdry", "--", binary, library)
    assert done.returncode == 0
    assert f"hook-bypassed: opens_deep-0: `{library}` reaches" in done.stderr
    assert "1 graph," in done.stderr


@pytest.mark.parametrize("how", ["env -i {}", "sh -c 'unset LD_PRELOAD; exec {}'", "sh -c 'LD_PRELOAD= exec {}'"])
def test_a_command_that_takes_the_hook_away_gives_no_archive(bench: Bench, command: CommandLine, how: str) -> None:
    """C11."""
    binary = bench.program("worker", f"-Wl,-rpath,{native.simulator_directory()}", *link_simulator())
    words = ["sh", "-c", how.format(f"{binary} 3")]
    done = command.run("capture", "--sim", "-o", "a.fdry", "--", *words)
    assert done.returncode == 125
    assert "no hooked CUDA process seen" in done.stderr
    assert list(command.work.iterdir()) == []


def test_other_tools_keep_their_place(bench: Bench, command: CommandLine, tmp_path: Path) -> None:
    """C12: another preloaded library and an injected one are inherited as they were, by all levels."""
    other = bench.library("namesakes")
    variables = {"LD_PRELOAD": str(other), "CUDA_INJECTION64_PATH": "/somewhere/libinjected.so"}
    line = 'echo "$LD_PRELOAD|$CUDA_INJECTION64_PATH"'
    done = command.run("capture", "-q", "--sim", "--", "sh", "-c", f"sh -c '{line}'; {line}", environment=variables)
    first, second = done.stdout.splitlines()
    assert first == second
    hook, _, rest = first.partition(":")
    assert (Path(hook).resolve(), rest) == (native.hook_library().resolve(), f"{other}|/somewhere/libinjected.so")


def test_without_a_mode_nothing_is_changed(bench: Bench, tmp_path: Path) -> None:
    """C12: where the hook is preloaded for good, only a mode wakes it."""
    binary = bench.program("worker", *link_simulator())
    done = bench.run(binary, tmp_path / "session", "3", mode="")
    assert (done.code, done.lines, done.status) == (0, ["worker captured 3"], "")
    assert base_environment().get("FOUNDRY_MODE") is None
    assert list((tmp_path / "session").iterdir()) == []
