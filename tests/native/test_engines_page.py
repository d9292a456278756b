"""The examples of `foundry/native/ENGINES.md` as an engine: plainly, under capture and restore, and compared."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.native_build import (
    PROGRAMS,
    base_environment,
    command_environment,
    compile_program,
    link_simulator,
    make_kernels,
    run_tool,
)
from helpers.source import NATIVE

from foundry import native

PAGE = NATIVE / "ENGINES.md"
LABELS = "14 14 12 12 8 8 8 8"
NUMBERS = ["20 20 16 16 0 0 0 0", "20 20 16 16 0 0 0 0"]
PLAIN = {
    "labels": [LABELS],
    "keyed": ["captured 2 updated 2 replayed 6 restored 0 held 2", *NUMBERS],
    "dedicated": ["captured 4 updated 0 replayed 6 restored 0 held 4", *NUMBERS],
}
CAPTURED = PLAIN | {"keyed": ["captured 4 updated 0 replayed 6 restored 0 held 2", *NUMBERS]}
RESTORED = PLAIN | {
    "keyed": ["captured 0 updated 2 replayed 4 restored 2 held 2", *NUMBERS],
    "dedicated": ["captured 0 updated 0 replayed 8 restored 4 held 4", *NUMBERS],
}
SKIPPED = {
    "labels": "3 graphs restored, 3 warm-ups and 3 captures skipped",
    "keyed": "2 graphs restored, 2 warm-ups and 2 captures skipped",
    "dedicated": "2 graphs restored, 2 warm-ups and 2 captures skipped",
}


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


class Page:
    """The engine, its kernels, and `foundry`."""

    def __init__(self, folder: Path) -> None:
        (folder / "page.h").write_text("\n".join(examples("c")))
        folders = (f"-I{folder}", f"-I{NATIVE / 'capi'}", f"-I{NATIVE / 'keyed'}")
        sources = [PROGRAMS / "engines_page.c", *sorted((NATIVE / "keyed").glob("*.c"))]
        flags = (*folders, "-std=c89", "-pedantic", *link_simulator())
        self.program = compile_program(folder / "engine", sources, *flags)
        self.image = folder / "kernels.image"
        make_kernels(self.image, PROGRAMS / "sim_kernels.c")
        (folder / "work").mkdir()
        self.foundry = CommandLine(folder / "work", native.hook_library().parent)
        self.foundry.environment.update(command_environment())

    def words(self, what: str) -> list[str]:
        return [str(self.program), str(self.image), what]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(tmp_path_factory.mktemp("page"))


@pytest.mark.parametrize("what", PLAIN)
def test_the_engine_runs_without_a_hook(page: Page, what: str) -> None:
    done = subprocess.run(page.words(what), env=base_environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", PLAIN[what])


@pytest.mark.parametrize("what", PLAIN)
def test_a_restore_gives_the_same_and_captures_nothing(page: Page, what: str, tmp_path: Path) -> None:
    archive = tmp_path / "engine.fdry"
    done = page.foundry.run("capture", "--sim", "-o", archive, "--", *page.words(what))
    assert (done.returncode, done.stdout.splitlines()) == (0, CAPTURED[what]), done.stderr
    done = page.foundry.run("restore", "--sim", archive, "--", *page.words(what))
    assert (done.returncode, done.stdout.splitlines()) == (0, RESTORED[what]), done.stderr
    assert SKIPPED[what] in done.stderr


def test_parity_of_the_engine(page: Page) -> None:
    done = page.foundry.run("parity", "--sim", "--", *page.words("parity"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("parity of decode: equal: 16 rounds ")
    assert "3 seams crossed" in done.stdout
    assert "1 of 1 controls caught" in done.stdout


def test_the_example_in_rust_is_rust(tmp_path: Path) -> None:
    compiler = shutil.which("rustc")
    if not compiler:
        pytest.skip("no Rust compiler")
    (text,) = examples("rust")
    main = '\nfn main() {\n    println!("{} {}", mode(), find(c"foundry_commit").is_some());\n}\n'
    source = tmp_path / "engine.rs"
    source.write_text(text + main)
    run_tool(compiler, "--edition", "2021", "-D", "warnings", "-o", tmp_path / "engine", source)
    assert run_tool(tmp_path / "engine").strip() == "0 false"
