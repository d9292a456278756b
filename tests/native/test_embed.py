"""Programs that link the restore engine and have no preloaded hook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from helpers import emulation
from helpers.commandline import CommandLine
from helpers.native_build import (
    PROGRAMS,
    base_environment,
    compile_program,
    make_kernels,
    preloads,
    run_tool,
    sanitized,
)
from helpers.source import NATIVE
from native.restore_scene import BASE, MEMORY, START, Scene, read_back

from foundry import native
from foundry.spool import restore_reports

pytestmark = pytest.mark.skipif(sanitized(), reason="a sanitized build has no library to link")

HEADERS = NATIVE / "capi"
COMPUTED = {"2": "7 7 7 7", "5": "16 16 16 16"}


def said(mode: str, how: str, *, hooked: bool = False, commit: int = 0) -> list[str]:
    before = "" if hooked else "the program has not opened libcuda.so.1"
    again = 0 if hooked else -2
    results = [f"{key} {how} {value}" for key, value in COMPUTED.items()]
    return [
        f"before {before}",
        f"mode {mode}" + (" " if mode.isdigit() else ""),
        f"again {again}",
        *results,
        f"commit {commit}",
    ]


class Embedded:
    """The program, its kernels, and an archive of its graphs with an image of that."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        library = native.static_library()
        # Plain C: the library brings what it needs of a C++ runtime.
        flags = ("-std=gnu11", f"-I{HEADERS}", str(library))
        self.program = compile_program(folder / "embedded", [PROGRAMS / "embedded.c"], *flags)
        self.kernels = folder / "kernels.fsim"
        make_kernels(self.kernels, PROGRAMS / "sim_kernels.c")
        self.image = folder / "embedded.image"
        self.archive = folder / "embedded.fdry"
        (folder / "command").mkdir()
        self.foundry = CommandLine(folder / "command", native.hook_library().parent)

    def capture(self) -> None:
        """Capture with the preloaded hook, and make the image."""
        words = ("capture", "--sim", "-o", self.archive, "--", self.program, self.kernels, "none")
        done = self.foundry.run(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == said("1", "captured", hooked=True)
        done = self.foundry.run("image", self.archive, "-o", self.image)
        assert done.returncode == 0, done.stderr

    def run(self, *arguments: object, **environment: str) -> tuple[list[str], str]:
        done = subprocess.run(
            [str(self.program), str(self.kernels), *map(str, arguments)],
            env={**base_environment(), **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stdout.splitlines(), done.stderr


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Embedded:
    if emulation.active():
        pytest.skip("not under an emulator: `foundry capture` takes no program of another processor")
    made = Embedded(tmp_path_factory.mktemp("embedded"))
    made.capture()
    return made


def test_a_program_gets_its_graphs_back_by_itself(embedded: Embedded) -> None:
    lines, errors = embedded.run(embedded.image)
    assert lines == said("2", "restored")
    assert re.fullmatch(r"foundry: 2 graphs restored, .* \[simulated\]\n", errors)


def test_without_an_image_it_captures(embedded: Embedded) -> None:
    assert embedded.run("none") == (said("0", "captured", commit=-1), "")


def test_the_environment_turns_nothing_on(embedded: Embedded, tmp_path: Path) -> None:
    settings = {"FOUNDRY_MODE": "capture", "FOUNDRY_SPOOL": str(tmp_path), "FOUNDRY_STATUS": str(tmp_path / "status")}
    assert embedded.run("none", **settings)[0] == said("0", "captured", commit=-1)
    assert list(tmp_path.iterdir()) == []


def test_quiet_is_quiet(embedded: Embedded) -> None:
    assert embedded.run(embedded.image, FOUNDRY_QUIET="1") == (said("2", "restored"), "")


def test_an_image_that_is_not_there_is_said_at_once(embedded: Embedded, tmp_path: Path) -> None:
    lines, _ = embedded.run(tmp_path / "none.image")
    assert lines[1] == f"embed -1 cannot read `{tmp_path}/none.image`"
    assert lines[4:6] == [f"{key} captured {value}" for key, value in COMPUTED.items()]


def test_a_damaged_image_is_given_up_before_it_is_used(embedded: Embedded, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.image"
    damaged.write_bytes(embedded.image.read_bytes()[:-64])
    lines, errors = embedded.run(damaged)
    assert re.fullmatch(r"mode 0 `.*damaged\.image`: .+", lines[1])
    assert lines[3:5] == [f"{key} captured {value}" for key, value in COMPUTED.items()]
    assert errors.startswith("foundry: warning: restore given up: ")


def test_another_gpu_is_given_up(embedded: Embedded) -> None:
    lines, _ = embedded.run(embedded.image, FOUNDRY_SIM_GPU="NVIDIA Simulated A100:8.0:108")
    assert "mismatch-gpu-model" in lines[1]
    assert lines[3] == f"2 captured {COMPUTED['2']}"


def test_a_report_says_what_was_restored(embedded: Embedded, tmp_path: Path) -> None:
    lines, _ = embedded.run(embedded.image, tmp_path)
    assert lines == said("2", "restored")
    (report,) = restore_reports(tmp_path)
    assert {graph.key: graph.reason for graph in report.graphs} == dict.fromkeys(COMPUTED, "")


def test_a_preloaded_hook_does_the_work(embedded: Embedded) -> None:
    options = ("--sim", "--no-early", "--allow", "mismatch-arguments")
    words = ("restore", *options, embedded.archive, "--", embedded.program)
    done = embedded.foundry.run(*words, embedded.kernels, embedded.folder / "not looked at")
    assert done.stdout.splitlines() == said("2", "restored", hooked=True)


def test_the_library_brings_three_names_and_needs_the_c_library(embedded: Embedded) -> None:
    symbols = [line.split() for line in run_tool("nm", native.static_library()).splitlines() if line.strip()]
    defined = {words[-1] for words in symbols if len(words) == 3 and (words[1].isupper() or words[1] in "uvw")}
    assert defined == {"foundry_embed_entry", "foundry_embed_restore", "__wrap_dlsym"}
    assert ".init_array" not in run_tool("readelf", "-SW", native.static_library())
    needed = set(re.findall(r"\(NEEDED\).*\[(.*?)\]", run_tool("readelf", "-dW", embedded.program)))
    assert needed <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"}
    assert not re.search(r" (cu[A-Z]\w*|foundry_\w+|dlsym)$", run_tool("nm", "-D", "--defined-only", embedded.program))


def test_a_program_whose_look_ups_are_wrapped_needs_no_other_change(tmp_path: Path, kernels: bytes) -> None:
    flags = (f"-include{HEADERS}/foundry_embed.h", "-Wl,--wrap=dlsym", str(native.static_library()))
    program = compile_program(tmp_path / "program", [PROGRAMS / "restore_program.cpp"], *flags)
    scene = Scene(kernels)
    scene.add_pair("1", 5, metadata='{"batch": 1}')
    scene.add_pair("2", 7)
    scene.file.write(tmp_path)
    settings = {"EMBEDDED_IMAGE": str(tmp_path / "program-0.image"), "FOUNDRY_SIM_MEMORY": str(MEMORY)}
    commands = (
        *START,
        "alloc:4096",
        "mode",
        "find:decode:1",
        "list:decode",
        *read_back("1"),
        *read_back("2"),
        "commit",
    )
    environment = {**base_environment(), **settings}
    done = subprocess.run([program, *commands], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        f"alloc {BASE:#x}",
        "mode 2 ",
        'found {"batch": 1}',
        "list 1 2; ",
        *("wait 0", "launch 0", "read 105 105 105 105"),
        *("wait 0", "launch 0", "read 107 107 107 107"),
        "commit 0",
    ]


def test_under_a_hook_wrapped_look_ups_are_the_hooks(tmp_path: Path, kernels: bytes) -> None:
    flags = (f"-include{HEADERS}/foundry_embed.h", "-Wl,--wrap=dlsym", str(native.static_library()))
    program = compile_program(tmp_path / "program", [PROGRAMS / "restore_program.cpp"], *flags)
    spool = tmp_path / "spool"
    spool.mkdir()
    settings = {"FOUNDRY_MODE": "capture", "FOUNDRY_SPOOL": str(spool), "LD_PRELOAD": " ".join(preloads())}
    environment = {**base_environment(), **settings, "EMBEDDED_IMAGE": "not looked at"}
    commands = (*START, "alloc:4096", "mode", "commit")
    done = subprocess.run([program, *commands], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[1:] == ["mode 1 ", "commit 0"], done.stderr
    assert (spool / "program-0" / "events").stat().st_size > 0
