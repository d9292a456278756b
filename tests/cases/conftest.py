"""What the tests of reported cases share: compiled programs, and `foundry` with the real hook on the simulator."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.native_build import make_kernels
from native.hook_run import Bench

from foundry import native

SOURCES = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Programs of this folder, with kernels of their own beside the usual ones."""
    made = Bench(tmp_path_factory.mktemp("cases"), SOURCES)
    make_kernels(made.folder / "special.image", SOURCES / "kernels.c")
    return made


class Foundry(CommandLine):
    """One that ends with the test, whatever becomes of that; what it started ends with it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, native.library_directory())
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: object, **options: object) -> subprocess.Popen[str]:
        self.started.append(super().start(*arguments, **options))
        return self.started[-1]


@pytest.fixture
def command(tmp_path: Path) -> Iterator[CommandLine]:
    made = Foundry(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
            process.communicate()
